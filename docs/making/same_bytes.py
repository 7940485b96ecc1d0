"""Compares what two trees make of the same input, byte for byte: `same_bytes.py --before COMMIT`.

Compared are the releases and receipts of every method, checkpoints resumed half-way (also those
of the older tree by the newer), `stream`, the output and the files of every command with
`--json`, a recorded campaign with each store, and `tests/vectors`. Each tree is run by processes
of its own with only what both have: `retrasyn.synthesize`, the command line and the HTTP API.
What is compared is a digest; what was refused is compared by its words.

A folder given with `--keep` holds what the older tree made, so that a second comparison runs the
newer tree only.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import functools
import hashlib
import io
import json
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.compute as pc
import pyarrow.parquet as pq
import recorded_campaign as campaigns

import retrasyn  # of the tree that PYTHONPATH names

ROOT = Path(__file__).parents[2]
ORACLES = ("oue", "grr", "olh", "auto", "small")
SEEDS = (0, 1)
CITY_BOX, TDRIVE_BOX = (0.0, 0.0, 10.0, 10.0), (116.15, 39.75, 116.60, 40.10)
TDRIVE_STEPS = {"counts": 60, "reports": 8}  # the first so many of its timestamps
WHOLE_TDRIVE = ("steered", "retrasyn-p", "retrasyn-b")  # these run over all of it, too
STREAMED = {"errors": ("--errors",), "olh": ("--oracle", "olh"), "faithful": ("--faithful",)}
CHECKPOINTED = (
    *("steered", "steered-flags", "steered-hidden", "retrasyn-p", "retrasyn-b"),
    *("random-p", "noeq-p", "lpa", "lbd", "lpd-steered"),
)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "faithful": {"faithful": True},
    "transition": {"unit": "transition"},
    "stream ledger": {"ledger": "stream"},
    "small grid": {"grid": 2, "window": 3, "epsilon": 0.5},
}
_BOX = ("--box", "0,0,10,10")
_SEED = ("--seed", "0")
_MAKE = ("real.parquet", *_BOX, *_SEED, "-o")
_TIMED = ("timed.parquet", *_BOX, *_SEED, "-o")
COMMANDS = {
    "synthesize": ("synthesize", *_MAKE, "new.parquet", "--errors", "errors.csv"),
    "synthesize csv": ("synthesize", *_MAKE, "new.csv", "--method", "retrasyn-p"),
    "synthesize geojson": ("synthesize", *_MAKE, "new.geojson"),
    "synthesize times": ("synthesize", *_TIMED, "new.csv", "--datetime"),
    "synthesize mfjson": ("synthesize", *_TIMED, "new.mfjson"),
    "synthesize parts": ("synthesize", *_MAKE, "parts.parquet", "--parts", "--shards", "3"),
    "synthesize without box": ("synthesize", "real.parquet", *_SEED, "-o", "new.parquet"),
    "unknown method": ("synthesize", *_MAKE, "new.parquet", "--method", "retrasin-p"),
    "unknown oracle": ("synthesize", *_MAKE, "new.parquet", "--oracle", "rappor"),
    "refused oracle": ("synthesize", *_MAKE, "new.csv", "--method", "lbd", "--oracle", "olh"),
    "unknown setting": ("synthesize", *_MAKE, "new.csv", "--set", "alpha=1"),
    "methods": ("methods",),
    "evaluate": ("evaluate", "real.parquet", "made.parquet", "--report", "report.html"),
    "evaluate one point": ("evaluate", "one.csv", "one.csv"),
    "compare": ("compare", "real.parquet", "made.parquet", "real.parquet"),
    "convert": ("convert", "real.parquet", "-o", "new.csv"),
    "convert times": ("convert", "fixes.csv", "-o", "new.parquet", "--every", "10min"),
    "export": ("export", "timed.parquet", "--to", "kepler", "-o", "trips.json"),
    "validate": ("validate", "real.parquet", *_BOX),
    "validate one point": ("validate", "one.csv"),
    "validate wrong": ("validate", "wrong.csv"),
    "generate": (
        *("generate", "--network", "city", "--objects", "50", "--new", "5", "--steps", "5"),
        *("-o", "new.parquet", "--roads", "roads.geojson"),
    ),
    "roads": ("roads", "streets.geojson", *_BOX),
    "demo": ("demo", "--out", "demo", *_SEED),
    "suggest": ("suggest", "real.parquet", "--epsilon", "4"),
    "plan": ("plan", "--users", "200", "--no-simulation"),
    "plan simulated": ("plan", "--users", "60"),
    "reproduce": (
        *("reproduce", "table1", "--only", "tdrive", "--data", "tdrive=real.parquet"),
        *("--out", "tables", "--quiet"),
    ),
    "doctor": ("doctor", "--port", "8977"),
    "audit": ("audit", "--reports", "2000"),
    "audit olh": ("audit", "--reports", "2000", "--oracle", "olh", "--simulated"),
    "audit window": ("audit", "window", "--runs", "100"),
    "receipt show": ("receipt", "show", "made.parquet.receipt.json"),
    "receipt verify": ("receipt", "verify", "made.parquet.receipt.json"),
}
"""Every command with `--json` that needs no service."""

SERVED = ("invite", "fleet", "device status")
"""Those that need one."""
_WALKS = [(n, t) for n in range(9) for t in range(30)]

Made = str | dict[str, str]
Items = Iterator[tuple[str, Callable[[], Made]]]
"""What is compared, by name, and what makes it."""


# What is compared.


def digest(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def normalise(text: str, *places: Path) -> str:
    """Replace what differs from run to run: folders, addresses, tokens, times, measured noise.

    Times are what `doctor` says of the clock and of compiling, and a fleet of its slowest round;
    measured is the bound that `audit` estimates from the noise of real devices. Whether the page
    of the live map was built is not in a commit, either.
    """
    for place in places:
        text = text.replace(str(place), "FOLDER")
    for pattern, word in (
        (r"http://127\.0\.0\.1:\d+", "ADDRESS"),
        (r"#enrol=[\w.-]+", "#enrol=TOKEN"),
        (r"[\d-]+ [\d:]+ UTC; how far", "NOW; how far"),
        (r"ready in [\d.]+ s, kept in [^\"]+", "ready in SECONDS"),
        (r'("name": "live map")(,\s+"\w+": [^\n]+){3}', r"\1"),
        (r'("(?:epsilon_lower_bound|slowest)": )[\d.e+-]+', r"\1MEASURED"),
    ):
        text = re.sub(pattern, word, text)
    return text


def everything(tree: Path, data: Path | None, kept: Path, work: Path) -> Items:
    """Go through all that is compared."""
    yield from vectors(tree)
    yield from methods_over_city()
    yield from checkpoints(kept, work)
    yield from commands(tree, work)
    yield from streams(tree, work)
    yield from recorded(tree, kept, work)
    if data is not None and (data / "tdrive.parquet").is_file():
        yield from methods_over_tdrive(data / "tdrive.parquet", work)


def vectors(tree: Path) -> Items:
    """Go through the files of known answers."""
    folder = tree / "tests" / "vectors"
    for path in sorted(folder.rglob("*.json")):
        yield f"vectors/{path.relative_to(folder)}", functools.partial(_digest_of_file, path)


@functools.cache
def city() -> Any:
    """Return the built-in city, small."""
    return retrasyn.demo_city(n_users=300, n_timestamps=60, seed=1)


def run(read: Callable[[], Any], method: str, **options: Any) -> Made:
    """Return the digests of what a method makes, or the words with which it is refused."""
    try:
        made = retrasyn.synthesize(read(), method, **{"seed": 0} | options)
    except retrasyn.RetraSynError as error:
        return f"refused: {error}"
    with tempfile.TemporaryDirectory() as folder:
        retrasyn.write(made.synthetic, Path(folder) / "made.parquet")
        points = (Path(folder) / "made.parquet").read_bytes()
    return {"points": digest(points), "receipt": digest(made.receipt.to_json().encode())}


def methods_over_city() -> Items:
    """Go through every method with every oracle, report source and seed, and some options."""
    for method in retrasyn.METHODS:
        over = functools.partial(run, city, method, box=CITY_BOX)
        for oracle in ORACLES:
            for door in ("counts", "reports"):
                for seed in SEEDS:
                    yield (
                        f"city/{method}/{oracle}/{door}/{seed}",
                        functools.partial(over, oracle=oracle, door=door, seed=seed),
                    )
        for name, options in OPTIONS.items():
            yield f"city/{method}/{name}", functools.partial(over, **options)


def methods_over_tdrive(file: Path, work: Path) -> Items:
    """Go through every method over the beginning of T-Drive, and a few over all of it."""
    for method in retrasyn.METHODS:
        for door, steps in TDRIVE_STEPS.items():
            read = functools.partial(beginning, file, work, steps)
            over = functools.partial(run, read, method, box=TDRIVE_BOX, door=door)
            for seed in SEEDS if door == "counts" else SEEDS[:1]:
                yield f"tdrive/{method}/oue/{door}/{seed}", functools.partial(over, seed=seed)
            for oracle in ORACLES[1:] if door == "counts" else ():
                yield f"tdrive/{method}/{oracle}/{door}/0", functools.partial(over, oracle=oracle)
    for method in WHOLE_TDRIVE:
        read = functools.partial(retrasyn.read, file)
        yield f"tdrive whole/{method}", functools.partial(run, read, method, box=TDRIVE_BOX)


@functools.cache
def beginning(file: Path, work: Path, steps: int) -> Any:
    """Return the first timestamps of a file."""
    table = pq.read_table(file)
    pq.write_table(table.filter(pc.less(table["t"], steps)), work / "beginning.parquet")
    return retrasyn.read(work / "beginning.parquet")


# Checkpoints.


def checkpoints(kept: Path, work: Path) -> Items:
    """Go through runs stopped half-way: gone on with in this tree, and of the older tree."""
    for method in CHECKPOINTED:
        yield f"checkpoint/{method}", functools.partial(_resumed, method, work)
        half = kept / "checkpoints" / method
        yield f"older checkpoint/{method}", functools.partial(_handed_over, method, half, work)


def _resumed(method: str, work: Path) -> Made:
    folder = work / "half"
    shutil.rmtree(folder, ignore_errors=True)
    stop_half_way(method, folder)
    made = run(city, method, box=CITY_BOX, checkpoint=folder, resume=True)
    if isinstance(made, dict):
        made["as the whole run"] = str(made == run(city, method, box=CITY_BOX))
    return made


def _handed_over(method: str, half: Path, work: Path) -> Made:
    """Return whether a run that the older tree began ends as one of this tree alone."""
    folder = work / "half"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(half, folder)
    made = run(city, method, box=CITY_BOX, checkpoint=folder, resume=True)
    if isinstance(made, str):
        return normalise(made, work)
    return str(made == run(city, method, box=CITY_BOX))


def stop_half_way(method: str, folder: Path) -> None:
    """Leave the checkpoint of half a run."""

    def stop(done: int, n: int) -> None:
        if done == n // 2:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        run(city, method, box=CITY_BOX, checkpoint=folder, progress=stop)


# The command line.


def commands(tree: Path, work: Path) -> Items:
    """Go through every command with `--json`: its code, its output and the files it writes."""
    for name, words in COMMANDS.items():
        yield f"command/{name}", functools.partial(_command, tree, work, (*words, "--json"))
    yield "command/served", functools.partial(served, tree, work)


def streams(tree: Path, work: Path) -> Items:
    """Go through every method on the command line of real time."""
    common = ("stream", "lines.jsonl", *_BOX, "--seed", "3", "--receipt", "receipt.json")
    cases = {method: ("--method", method) for method in retrasyn.METHODS} | STREAMED
    for name, words in cases.items():
        yield f"stream/{name}", functools.partial(_command, tree, work, (*common, *words))


def _command(tree: Path, work: Path, words: tuple[str, ...]) -> Made:
    """Run a command in a folder with all inputs; return what it said and wrote."""
    inputs, folder = _inputs(tree, work), work / "command"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    said = in_process(words, folder)
    made = {"said": digest(normalise(said, work, tree, ROOT).encode())}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not (inputs / name).exists():
            made[name] = _digest_of_file(path, work, tree)
    return made


def in_process(words: tuple[str, ...], folder: Path) -> str:
    """Run a command as `python -m retrasyn` does, without the time that a process takes to start.

    Return its exit code and all that it printed.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
        mock.patch.object(sys, "argv", ["retrasyn", *words]),
    ):
        warnings.simplefilter("always", UserWarning)
        try:
            runpy.run_module("retrasyn", run_name="__main__")
        except SystemExit as end:
            return "\n".join([str(end.code), out.getvalue(), err.getvalue()])
    raise AssertionError("a command ends with an exit code")


def _digest_of_file(path: Path, *places: Path) -> str:
    try:
        return digest(normalise(path.read_bytes().decode(), *places).encode())
    except UnicodeDecodeError:
        return digest(path.read_bytes())


def _inputs(tree: Path, work: Path) -> Path:
    """Return a folder with small inputs for commands."""
    folder = work / "inputs"
    if folder.exists():
        return folder
    folder.mkdir()
    real = retrasyn.demo_city(n_users=60, n_timestamps=30, seed=1)
    retrasyn.write(real, folder / "real.parquet")
    cross = [[[0, 5], [5, 5], [10, 5]], [[5, 0], [5, 5], [5, 10]]]
    streets = {"type": "MultiLineString", "coordinates": cross}
    (folder / "streets.geojson").write_text(json.dumps(streets))
    (folder / "one.csv").write_text("traj_id,t,x,y\n1,0,0.5,0.5\n")
    (folder / "wrong.csv").write_text("traj_id,t,x,y\n1,0,0.5,nan\n1,2,0.5,inf\n1,1,a,\n")
    walk = [f"{n},{t},{1 + n},{1 + t / 2}\n" for n in range(4) for t in range(3)]
    (folder / "walk.csv").write_text("".join(["traj_id,t,x,y\n", *walk]))
    fixes = [f"{n},2024-05-01T{8 + t // 6:02}:{t % 6}5:00Z,{n},{t / 4}\n" for n, t in _WALKS]
    (folder / "fixes.csv").write_text("".join(["user_id,time,x,y\n", *fixes]))
    columns = {"traj_id": real.traj_id, "x": real.x, "y": real.y}
    with (folder / "lines.jsonl").open("w") as lines:
        for t in range(30):
            at = {name: values[real.t == t].tolist() for name, values in columns.items()}
            lines.write(json.dumps({"t": t, **at}) + "\n")
    environment = campaigns.environment(tree)
    for words in (
        ("synthesize", *_MAKE, "made.parquet", "--quiet"),
        ("convert", "fixes.csv", "-o", "timed.parquet", "--every", "10min", "--quiet"),
    ):
        subprocess.run(campaigns.command(*words), cwd=folder, env=environment, check=True)
    return folder


def served(tree: Path, work: Path) -> Made:
    """Run the commands that need a service: links, a fleet, and the status of a device."""
    folder = work / "served"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_inputs(tree, work), folder)
    made = {}
    asks_all = ["period=2", "window=1", "method=uniform-b"]  # so that nobody's turn is drawn
    with campaigns.serving(folder / "service", asks_all, tree=tree) as service:

        def say(*words: object) -> str:
            return subprocess.run(
                campaigns.command(*words),
                cwd=folder,
                env=campaigns.environment(tree),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout

        links = say("invite", "2", "--folder", "service", "--json")
        say("device", "enrol", json.loads(links)[0], "--folder", "mine", "--yes")
        fleet = ("fleet", "walk.csv", "--server", service.url, "--folder", "fleet")
        token = ("--operator-token", "service/operator.token")
        texts = (
            links,
            say(*fleet, *token, "--rounds", "3", "--json"),
            say("device", "status", "--folder", "mine", "--json"),
        )
    for name, text in zip(SERVED, texts, strict=True):
        made[name] = digest(normalise(text, work, tree).encode())
    return made


# A recorded campaign.


def recorded(tree: Path, kept: Path, work: Path) -> Items:
    """Go through the campaigns: the frames sent again, and the releases made again."""
    for place in sorted(done.parent for done in (kept / "campaigns").glob("*/*/done")):
        name = "/".join(place.parts[-2:])
        for how in (campaigns.play, campaigns.make_again):
            yield (
                f"campaign/{name}/{how.__name__}",
                functools.partial(_released, how, place, tree, work),
            )


def _released(how: Callable[..., dict[str, bytes]], place: Path, tree: Path, work: Path) -> Made:
    folder = work / "campaign"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        needed = place.parent.name == "postgresql"
        database = stack.enter_context(campaigns.postgres()) if needed else None
        files = how(place, folder, tree, database)
    made = {name: digest(content) for name, content in files.items()}
    if how is campaigns.make_again:  # played, no round is missed that a busy machine has missed
        first = campaigns.released(place / "whole", max(campaigns.recorded(place)))
        made["as first released"] = str(files == first)
    return made


# Both trees.


def prepare(tree: Path, kept: Path, only: str = "*") -> None:
    """Let the older tree make what both are given: checkpoints and recorded campaigns."""
    for method in CHECKPOINTED if _wanted("older checkpoint/", only) else ():
        place = kept / "checkpoints" / method
        if not place.exists():
            stop_half_way(method, place)
    if not _wanted("campaign/", only):
        return
    with campaigns.postgres() as database:
        for store in campaigns.STORES:
            if store == "postgresql" and database is None:
                print("left out: PostgreSQL is not installed", flush=True)
                continue
            for name, own in campaigns.CAMPAIGNS.items():
                place = kept / "campaigns" / store / name
                if (place / "done").exists():
                    continue
                shutil.rmtree(place, ignore_errors=True)
                used = database if store == "postgresql" else None
                campaigns.record(place, own, tree, used)
                (place / "done").touch()
                print(f"recorded a campaign: {store}, {name}", flush=True)


def _wanted(section: str, only: str) -> bool:
    """Tell whether a pattern may ask for something of a section."""
    return only.startswith((section, "*"))


def record(tree: Path, data: Path | None, kept: Path, only: str = "*") -> dict[str, str]:
    """Return the digests of all that a tree makes, by name."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as work, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in everything(tree, data, kept, Path(work)):
            if fnmatch.fnmatchcase(name, only):
                try:
                    made = make()
                except Exception as error:  # noqa: BLE001 - the other tree may do the same
                    made = f"failed: {type(error).__name__}: {error}"
                if isinstance(made, str):
                    found[name] = made
                else:
                    found |= {f"{name}/{part}": value for part, value in made.items()}
    return found


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what differs, a line each."""
    return [
        f"{name}: {before.get(name, 'missing')} became {after.get(name, 'missing')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def unwell(found: Mapping[str, str]) -> list[str]:
    """Return what one tree alone shows to be wrong."""
    return [f"{name}: {value}" for name, value in found.items() if _is_wrong(value)]


def _is_wrong(value: str) -> bool:
    return value == "False" or value.startswith("failed: ")


@contextlib.contextmanager
def tree_of(name: str) -> Iterator[Path]:
    """Return a folder as it is, or the files of a commit in a folder of their own."""
    if (Path(name) / "src" / "retrasyn").is_dir():
        yield Path(name).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ("git", "-C", str(ROOT), "worktree")
        subprocess.run([*git, "add", "--detach", folder, name], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)


def in_tree(tree: Path, *words: object) -> None:
    """Run this script with the package of a tree."""
    subprocess.run(
        [sys.executable, __file__, *map(str, words), "--tree", str(tree)],
        env=campaigns.environment(tree),
        check=True,
    )


def main() -> int:
    """Compare, or do one half of it in a process of its own."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    words.add_argument("step", nargs="?", choices=("both", "prepare", "record"), default="both")
    words.add_argument("--before", metavar="COMMIT|FOLDER", help="the older tree")
    words.add_argument("--after", metavar="COMMIT|FOLDER", default=str(ROOT), help="the newer tree")
    words.add_argument("--data", type=Path, help="a folder with tdrive.parquet")
    words.add_argument("--keep", type=Path, help="keep what the older tree made, and use it again")
    words.add_argument("--only", default="*", help="only what has such a name, as 'city/*'")
    words.add_argument("--tree", type=Path, help=argparse.SUPPRESS)
    words.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.step == "both":
        with tempfile.TemporaryDirectory() as folder:
            return both(given, given.keep or Path(folder))
    if not Path(retrasyn.__file__).resolve().is_relative_to(given.tree.resolve()):
        raise SystemExit(f"retrasyn is that of {retrasyn.__file__}, not of {given.tree}")
    if given.step == "prepare":
        prepare(given.tree, given.keep, given.only)
    else:
        found = record(given.tree, given.data, given.keep, given.only)
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def both(given: argparse.Namespace, kept: Path) -> int:
    """Run both trees one after the other, and say what differs."""
    if given.before is None:
        raise SystemExit("name the older tree with --before: a commit or a folder")
    kept.mkdir(parents=True, exist_ok=True)
    data = () if given.data is None else ("--data", given.data.resolve())
    if given.data is None or not (given.data / "tdrive.parquet").is_file():
        print("left out: T-Drive; name a folder with tdrive.parquet by --data")
    common = (*data, "--keep", kept.resolve(), "--only", given.only)
    sides = {}
    for side, name in (("before", given.before), ("after", given.after)):
        whole, begin = kept.resolve() / f"{side}.json", time.monotonic()
        out = whole if given.only == "*" else whole.with_suffix(".part.json")
        if side == "before" and whole.exists():
            out = whole
        else:
            with tree_of(name) as tree:
                if side == "before":
                    in_tree(tree, "prepare", *common)
                in_tree(tree, "record", *common, "--out", out)
            print(f"{side}: recorded in {time.monotonic() - begin:.0f} s", flush=True)
        found = json.loads(out.read_text())
        sides[side] = {n: v for n, v in found.items() if fnmatch.fnmatchcase(n, given.only + "*")}
    return tell(sides["before"], sides["after"])


def tell(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Say how much was compared and what differs; return the exit code."""
    differing, alone = compare(before, after), unwell(after)
    counts = Counter(name.partition("/")[0] for name in sorted(before.keys() | after.keys()))
    for section, n in counts.items():
        wrong = len(compare(_of(section, before), _of(section, after)))
        print(f"{section:16} {n:6,} compared, {wrong} differ")
    print(f"{'together':16} {sum(counts.values()):6,} compared, {len(differing)} differ")
    for line in [*differing, *(f"in itself: {line}" for line in alone)]:
        print(line)
    return 1 if differing or alone else 0


def _of(section: str, found: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if name.startswith(f"{section}/")}


if __name__ == "__main__":
    sys.exit(main())
