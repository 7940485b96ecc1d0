# make demo  : set everything up, then turn a small city into a private synthetic stream
# make demo-live : a service and a fleet of made-up devices on a fast clock, until Ctrl-C
# make test  : set everything up, then run every check
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Two modules of tests at a time.
PYTEST := $(BIN)/pytest -m "not long" --numprocesses 2 --dist loadscope
# Run once more with every index of the kernels checked: compiled, a wrong one goes unseen.
KERNEL_TESTS := tests/contracts tests/metrics tests/mobility tests/oracles tests/report/test_content.py \
	tests/simulation tests/synthesis

# What the guarantee rests on: every branch is tested.
TRUSTED := tests/audit tests/contracts tests/device tests/oracles tests/privacy tests/randomness tests/receipts \
	tests/simulation tests/wire tests/test_curator.py

.PHONY: demo demo-live test test-long cover bench lint setup clean

demo: $(READY)
	$(BIN)/retrasyn demo --out demo-out

demo-live: $(READY)
	$(BIN)/retrasyn demo-live

test: $(READY) lint
	$(PYTEST)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/checked-kernels $(PYTEST) $(KERNEL_TESTS)

test-long: $(READY)
	$(BIN)/pytest -m long -rs

cover: $(READY)
	$(BIN)/coverage run -m pytest -m "not long" $(TRUSTED)
	$(BIN)/coverage report

bench: $(READY)
	$(BIN)/python benchmarks/run.py

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples docs/figures
	$(BIN)/ruff format --check src tests benchmarks examples docs/figures
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "RetraSyn needs Python 3.11 or newer, this is %d.%d; try: make PYTHON=python3.11 $(MAKECMDGOALS)" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) .coverage demo-out bench-out .mypy_cache .pytest_cache .ruff_cache .hypothesis
