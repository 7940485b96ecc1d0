"""mutmut, with the tests collected once: a mutant is a fork that begins with its first test.

mutmut itself starts pytest anew in each fork, which takes longer than most mutants live. The tests
that killed another mutant of the same function come first, then the quickest. Each has temporary
folders of its own: several run at a time. What a cached
function returned before the fork is forgotten, since the mutant would never be asked. A mutant
that does not end is stopped by the processor time of one test, which a busy machine does not
change; the clock stops only those that wait.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterable
from functools import _lru_cache_wrapper
from pathlib import Path
from tempfile import mkdtemp
from time import process_time

from _pytest.config import _prepareconfig
from _pytest.main import Session
from mutmut.__main__ import cli
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd
from mutmut.workers import isolation

_KILLERS = Path("killers.txt")  # a mutant and the test that failed, on each line
_ENDLESS = 8  # seconds of processor time, and twice what the test takes without a mutant
_ODD = 35  # what mutmut calls suspicious: nobody can say whether a test failed
_PATIENCE = 4  # as long as mutmut would wait, and twice the processor time it grants
_WORDS = (
    *("--rootdir=.", "--maxfail=1", "--tb=native", "--capture=no"),
    *("--basetemp=../scratch", "-o", "tmp_path_retention_policy=none"),
)


class CollectedOnce(PytestRunner):
    """Runs the tests of a mutant in the session of the process it was forked from."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = False  # all tests have passed in this process

    def prepare_main_test_run(self) -> None:
        """Collect all tests, without running any."""
        words = [*_WORDS, *self._pytest_add_cli_args, *self._pytest_add_cli_args_test_selection]
        with change_cwd("mutants"):
            config = _prepareconfig(words)
            config._do_configure()
            config.pluginmanager.unregister(name="terminalreporter")
            self.session = Session.from_config(config)
            config.hook.pytest_sessionstart(session=self.session)
            config.hook.pytest_collection(session=self.session)
        self.folder = config._tmp_path_factory.getbasetemp()
        self.items = {_plain(item.nodeid): item for item in self.session.items}

    def run_stats(self, *, tests: Iterable[str]) -> int:
        """Find out which tests reach which function; they have to pass."""
        tests = list(tests)
        failed = super().run_stats(tests=tests)
        self.passed = not tests and not failed
        return failed

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        """Run some tests, and return 1 at the first that fails."""
        if mutant_name is not None:
            try:
                forget_results()
                with change_cwd("mutants"):
                    return self.run_one_by_one(mutant_name, list(tests))
            except BaseException:  # noqa: BLE001 - beyond this is mutmut, which would go on
                return _ODD
        forced_to_fail = os.environ["MUTANT_UNDER_TEST"] == "fail"
        if self.passed and not forced_to_fail:
            return 0
        return super().run_tests(mutant_name=None, tests=tests)

    def run_one_by_one(self, mutant: str, tests: list[str]) -> int:
        """Run the tests of a mutant in a folder of their own, and note which one fails."""
        folder = Path(mkdtemp(dir=self.folder))  # numbers of processes come again in a long run
        self.session.config._tmp_path_factory._basetemp = folder
        function = mutant.partition("__mutmut_")[0]
        known = [line.partition("\t") for line in _KILLERS.read_text().splitlines()]
        killers = [test for name, _, test in known if name.partition("__mutmut_")[0] == function]
        wanted = [*(test for test in reversed(killers) if test in set(tests)), *tests]
        items = [self.items[_plain(test)] for test in dict.fromkeys(wanted)]
        for item, following in zip(items, [*items[1:], None], strict=True):
            limit_processor(_ENDLESS + 2 * state().duration_by_test.get(item.nodeid, 0))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.session.testsfailed:
                with _KILLERS.open("a") as file:
                    file.write(f"{mutant}\t{item.nodeid}\n")
                return 1
        return 0


def limit_processor(seconds: float) -> None:
    """End this process once it has taken so much more processor time."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(int(process_time() + seconds), most), most))


def _plain(test: str) -> str:
    """Return the name of a test as collected for the first time: pytest escapes it every time."""
    return re.sub(r"\\+", "/", test)


def forget_results() -> None:
    """Empty every cache of results."""
    for name, module in list(sys.modules.items()):
        if name.startswith("retrasyn"):
            for value in vars(module).values():
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


def main() -> None:
    """Run mutmut with another runner, and with more patience."""
    register = isolation.register_timeout
    isolation.register_timeout = lambda pid, timeout_s: register(pid, timeout_s * _PATIENCE)
    isolation.PytestRunner = CollectedOnce
    if Path("mutants").is_dir():
        (Path("mutants") / _KILLERS).touch()
    cli()


if __name__ == "__main__":
    main()
