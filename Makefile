# make demo  : set everything up, then turn a small city into a private synthetic stream
# make demo-live : a service and a fleet of made-up devices on a fast clock, until Ctrl-C
# make test  : set everything up, then run every check; make quick: the checks that take seconds
# make image : a container of the curator, on the base image that DIGEST names
# make docs  : the documentation site, into site/; make reference writes its generated pages anew
PYTHON ?= python3
# Python keeps what it compiled, also where the environment forbids it: hundreds of processes start.
export PYTHONDONTWRITEBYTECODE :=
VENV   ?= .venv
BIN    := $(VENV)/bin
# What the program needs to run; and what it needs besides to be tested.
RUNS   := $(VENV)/.runs
READY  := $(VENV)/.ready
# Every version is pinned, every file has its hash; the package itself is not copied but linked.
INSTALL := $(BIN)/python -m pip install --quiet
PINNED  := $(INSTALL) --require-hashes --requirement requirements/build.txt
NODE    = $$([ -z "$$($(PYTHON) viewer/making.py requires)" ] || echo --requirement requirements/node.txt)
LINK    := $(INSTALL) --no-deps --no-build-isolation --editable .
# pip is silent for as long as it takes.
told    = @echo "Installing $$(cat requirements/build.txt requirements/$(1).txt | grep -c ==) pinned packages into $(VENV): about a minute"
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11.5 --generate-hashes --no-annotate --no-header \
	--quiet $(NEWER)
# The live map. RETRASYN_NO_VIEWER=1 leaves it out, for those without a network.
VIEWER := $(BIN)/python viewer/making.py
# Four modules of tests at a time, on two processors: many a test waits for a clock or a process.
# What could not run is listed at the end, with what to type.
PYTEST := $(BIN)/pytest -m "not long" -rs --dist loadscope --no-loadscope-reorder
# Run once more with every index of the kernels checked: compiled, a wrong one goes unseen.
CHECKED := NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/checked-kernels
KERNEL_TESTS := tests/contracts tests/metrics tests/mobility tests/oracles tests/report/test_content.py \
	tests/roads tests/simulation tests/synthesis

# What the guarantee rests on: every branch is tested.
TRUSTED := tests/audit tests/contracts tests/device tests/oracles tests/privacy tests/randomness tests/receipts \
	tests/simulation tests/wire tests/test_curator.py tests/test_bounded_json.py tests/test_files.py

.DELETE_ON_ERROR: # an environment that was half made is made anew
.PHONY: demo demo-live test tests checked test-long mutants quick cover bench lint kernels docs reference pins sbom image setup viewer clean

demo: $(RUNS)
	$(VIEWER)
	$(BIN)/retrasyn demo --out demo-out

demo-live: $(RUNS)
	$(VIEWER)
	$(BIN)/retrasyn demo --devices 1000

test: viewer
	$(MAKE) --no-print-directory --jobs 2 lint kernels
	$(MAKE) --no-print-directory --jobs 2 tests checked

# One thread for the matrices of each: more would wait for each other at full speed.
tests checked quick: export OPENBLAS_NUM_THREADS := 1

tests: $(READY)
	$(PYTEST) --numprocesses 4

# Beside the others, in the time that they wait; what it says is shown when it has ended.
checked: $(READY)
	@$(CHECKED) nice $(PYTEST) --numprocesses 1 $(KERNEL_TESTS) > $(VENV)/checked.txt 2>&1 \
	&& echo "With every index checked: $$(tail -1 $(VENV)/checked.txt)" || { cat $(VENV)/checked.txt; exit 1; }

# Compiled once, here, instead of by each of the processes of the tests at the same time.
kernels: $(READY)
	PYTHONPATH=tests $(BIN)/python -m support.compile_kernels

# For the loop of a person who works here: about three minutes.
quick: lint
	$(BIN)/pytest -m "not long and not system" --numprocesses 2 --dist loadscope
	@echo "Left out: tests that start processes, browsers, databases or Ray, and long ones; make test runs them."

test-long: viewer
	$(BIN)/pytest -m long -rs
	$(MAKE) mutants

# The code that privacy rests on, changed in thousands of places: a test has to notice each.
mutants: $(READY)
	$(BIN)/python tests/mutation/run.py $(MUTANTS)

cover: $(READY)
	$(BIN)/coverage run -m pytest -m "not long" $(TRUSTED)
	$(BIN)/coverage report

bench: $(READY)
	$(BIN)/python benchmarks/run.py

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples docs/figures docs/making viewer deploy hatch_build.py
	$(BIN)/ruff format --check src tests benchmarks examples docs/figures docs/making viewer deploy hatch_build.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(VIEWER) npm run check

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

reference: $(READY)
	$(BIN)/python docs/making/reference.py

# New pins; those that still fit stay. NEWER=--upgrade takes the newest of everything.
pins: $(READY)
	$(COMPILE) pyproject.toml --extra dev --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --extra device --extra report --extra serve \
		--constraint requirements/dev.txt --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --extra postgres --extra serve \
		--constraint requirements/dev.txt --output-file requirements/serve.txt
	$(COMPILE) --group build --constraint requirements/dev.txt --output-file requirements/build.txt
	$(COMPILE) --group node --output-file requirements/node.txt
	$(BIN)/python deploy/sbom.py

sbom: $(READY)
	$(BIN)/python deploy/sbom.py

# Without DIGEST, the registry is asked what the tag means today; it is said, to be given the next time.
TAG := docker.io/library/python:3.11-slim-bookworm
image:
	@digest=$(if $(DIGEST),$(DIGEST),$$(skopeo inspect --format '{{.Digest}}' docker://$(TAG))) \
	&& echo "The base image: DIGEST=$$digest" \
	&& podman build --format docker --build-arg PYTHON_DIGEST=$${digest#sha256:} -t retrasyn .

setup: viewer

viewer: $(READY)
	$(VIEWER)

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "RetraSyn needs Python 3.11 or newer, this is %d.%d; try: make PYTHON=python3.11 $(MAKECMDGOALS)" % v[:2])'
	@echo "Making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(RUNS): $(VENV)/pyvenv.cfg pyproject.toml $(wildcard requirements/*.txt)
	$(call told,run)
	@$(PINNED) --requirement requirements/run.txt $(NODE)
	@$(LINK)
	@touch $@

$(READY): $(VENV)/pyvenv.cfg pyproject.toml $(wildcard requirements/*.txt)
	$(call told,dev)
	@$(PINNED) --requirement requirements/dev.txt $(NODE)
	@$(LINK)
	@touch $(RUNS) $@

clean:
	rm -rf $(VENV) .coverage .mutants demo-out bench-out site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf viewer/node_modules viewer/.tests viewer/.built-from src/retrasyn/service/web/static/map
