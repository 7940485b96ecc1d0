"""Changes the code that privacy rests on, one small thing at a time, and sees whether a test fails.

    python tests/mutation/run.py                    everything that `pyproject.toml` names
    python tests/mutation/run.py "retrasyn.device*" some of it, quicker
    python tests/mutation/run.py --again            what survived the last time, after new tests

mutmut makes the mutants; for each, the tests that reach its function are run (`one_session.py`).
It works on a copy in `.mutants/`, in which two things are written otherwise and mean the same: a
property or a cached function, which it would leave alone, is a function and an assignment; and the
words of a message are an f-string, which it leaves alone, since no test should repeat them. A
protocol, which has no body, is passed over, and so are kernels, which are compiled: tests compare
them with plain loops.

At the end every survivor has to stand in `survivors.toml` with the reason why no test can tell it
from the original, and every entry there has to be a survivor.
"""

from __future__ import annotations

import ast
import fnmatch
import io
import os
import re
import resource
import shutil
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / ".mutants"
MUTATED = COPY / "mutants" / "src"
LISTED = Path(__file__).with_name("survivors.toml")
LEAST_KILLED = 0.95
_COPIED = ("src", "tests", "docs", "requirements", "pyproject.toml", "README.md")
_MESSAGE = re.compile(r"""(["'])(?!\1)\S*( \S+){2}""")  # three words or more, and no docstring
_SKIPPED = "# pragma: no mutate block"
_MEMORY = 4 << 30  # bytes: a loop that never ends must not take all there is
_KILLED = ("killed", "timeout", "segfault")


def copy_code(mutated: Iterable[str]) -> None:
    """Copy code and tests, the mutated files rewritten; what has not changed keeps its time."""
    patterns = list(mutated)

    def copy(source: str, target: str) -> None:
        path, content = Path(source), Path(source).read_bytes()
        if any(path.relative_to(ROOT).match(pattern) for pattern in patterns):
            content = rewritten(content.decode()).encode()
        if not Path(target).is_file() or Path(target).read_bytes() != content:
            Path(target).write_bytes(content)

    MUTATED.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "map")
            shutil.copytree(
                ROOT / name, COPY / name, ignore=ignored, copy_function=copy, dirs_exist_ok=True
            )
        else:
            copy(str(ROOT / name), str(COPY / name))


def rewritten(source: str) -> str:
    """Return the same program with bare functions and with messages out of mutmut's reach.

    >>> print(rewritten('class A:\\n    @property\\n    def b(self):\\n        return 1\\n'))
    class A:
        # property
        def b(self):
            return 1
        b = property(b)
    <BLANKLINE>
    >>> rewritten('x = "bad length", "one {two} three", b"one two three"')
    'x = "bad length", f"one {{two}} three", b"one two three"'
    """
    lines = source.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        text = token.string
        if token.type == tokenize.STRING and _MESSAGE.match(text):
            row, (begin, end) = token.start[0] - 1, (token.start[1], token.end[1])
            message = "f" + text.replace("{", "{{").replace("}", "}}")
            lines[row] = lines[row][:begin] + message + lines[row][end:]
    for function, decorator in sorted(_decorated(ast.parse(source)), key=lambda f: -f[0].lineno):
        indent, name, call = " " * function.col_offset, function.name, ast.unparse(decorator)
        lines.insert(function.end_lineno or 0, f"{indent}{name} = {call}({name})\n")
        lines[decorator.lineno - 1] = f"{indent}# {call}\n"
    return re.sub(
        r"^(class .*\bProtocol\):)$", rf"\1  {_SKIPPED}", "".join(lines), flags=re.MULTILINE
    )


def _decorated(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.expr]]:
    """Return properties and cached functions, each with its only decorator."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(decorator_list=[decorator]):
                if re.match(r"property$|(functools\.)?lru_cache\(", ast.unparse(decorator)):
                    yield node, decorator


def mutmut(*words: str, shown: bool = False) -> str:
    """Run mutmut on the copy."""
    environment = os.environ | {"PYTHONPATH": str(MUTATED), "HYPOTHESIS_PROFILE": "mutants"}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("one_session.py"), *words],
        cwd=COPY,
        env=environment,
        check=False,
        text=True,
        stdout=None if shown else subprocess.PIPE,
    )
    if done.returncode:
        sys.exit(f"error: mutmut {' '.join(words)} failed")
    return done.stdout or ""


def results() -> dict[str, str]:
    """Return what became of each mutant."""
    lines = mutmut("results", "--all", "true").splitlines()
    return dict(line.strip().rsplit(": ", 1) for line in lines if ": " in line)


def change_of(mutant: str) -> str:
    """Return the lines that a mutant takes away and adds, without their indentation."""
    lines = mutmut("show", mutant).splitlines()
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in changed)


def place_of(mutant: str) -> str:
    """Return module and function of a mutant.

    >>> place_of("retrasyn.device.ledger.x_spent__mutmut_3")
    'retrasyn.device.ledger.spent'
    >>> place_of("retrasyn.device.memory.xǁPinnedǁround_at__mutmut_1")
    'retrasyn.device.memory.Pinned.round_at'
    """
    module, _, name = mutant.rpartition("__mutmut_")[0].rpartition(".")
    return f"{module}.{name.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def main(words: list[str]) -> None:
    """Run the mutants, and end with an error unless the survivors are those that are listed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    wanted = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("--max-children=")]
    again = "--again" in words
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    copy_code(settings["only_mutate"])
    names = (
        [name for name, status in results().items() if status not in _KILLED] if again else wanted
    )
    mutmut("run", *options, *names, shown=True)
    sys.exit(report(results(), wanted or ["*"]))


def report(found: dict[str, str], wanted: Iterable[str]) -> int:
    """Print what survived; return 1 if it is not what is listed, or too much."""
    found = {name: status for name, status in found.items() if matches(name, wanted)}
    listed = {(entry["place"], entry["change"].strip()) for entry in read_listed()}
    listed = {one for one in listed if matches(one[0], wanted)}
    survivors = {
        name: (place_of(name), change_of(name))
        for name, status in found.items()
        if status not in _KILLED
    }
    unknown = {name: one for name, one in survivors.items() if one not in listed}
    for name, (place, change) in unknown.items():
        print(f"\n{place} ({name}, {found[name]})\n{change}")
    gone = listed - set(survivors.values())
    for place, change in sorted(gone):
        print(f"\nlisted, and not among the survivors: {place}\n{change}")
    killed = 1 - len(survivors) / len(found)
    print(
        f"\n{killed:.2%} of {len(found)} mutants killed ({dict(Counter(found.values()))}); ", end=""
    )
    print(f"{len(unknown)} survivors are not listed, {len(gone)} that are listed are gone")
    return int(bool(unknown) or bool(gone) or killed < LEAST_KILLED)


def read_listed() -> list[dict[str, str]]:
    """Return the survivors that are known: place, change and reason of each."""
    listed: list[dict[str, str]] = tomllib.loads(LISTED.read_text())["survivor"]
    return listed


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a name was asked for."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    main(sys.argv[1:])
