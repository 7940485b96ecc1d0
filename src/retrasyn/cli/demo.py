"""``retrasyn demo``: a small city becomes a private synthetic stream, with a report."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.cli import comparing, options, watch
from retrasyn.cli.demo_campaign import run_campaign
from retrasyn.cli.interrupts import interruptible_progress, saying_stopped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from retrasyn.metrics.suite import Scores
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.report.content import Content
    from retrasyn.run_settings import RunSettings

_FILES = (
    *("real.parquet", "real.roads.geojson"),
    *("synthetic.parquet", "synthetic.parquet.receipt.json", "report.html"),
)


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for what the demo makes. (default: demo-out)", show_default=False
        ),
    ] = None,
    seed: Annotated[
        str,
        typer.Option(
            metavar="INTEGER|random",
            help="A number repeats a run, each with a city of its own; random: fresh noise.",
        ),
    ] = "random",
    oracle: options.Oracle = "oue",
    live: Annotated[
        bool, typer.Option("--live", help="Show it on the live map while it is made.")
    ] = False,
    pace: Annotated[
        float, typer.Option(min=0, help="With --live: seconds from one timestamp to the next.")
    ] = 1.0,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Run a service and so many made-up devices instead.",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="With --devices: end after so many.")] = 3600,
    bare: comparing.WithoutBaselines = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures and files as JSON, and nothing else.")
    ] = False,
    quiet: options.Quiet = False,
    port: watch.Port = 8700,
    opens: watch.Open = False,
) -> None:
    """Make a small city with a rush hour, synthesise it privately, compare both in a report.

    With --live nothing is written: the map shows the synthetic city as it is made, the real one
    beside it, until Ctrl-C. With --devices people report to a service every second; its live map
    is at the address that is printed first.

    Example: retrasyn demo --out demo-out
    """
    from retrasyn.errors import SettingError

    if devices is not None:
        given = {"--live": live, "--json": as_json, "--quiet": quiet, "--no-baselines": bare}
        given |= {"--seed": seed != "random", "--oracle": oracle != "oue", "--open": opens}
        for option, asked in given.items():
            if asked:
                raise SettingError(
                    f"--devices runs a campaign, which has no {option}; leave it out"
                )
        run_campaign(devices, rounds, port, out)
        return
    noise = options.read_seed(seed)
    if not live:
        with saying_stopped("files that are finished stay"):
            place = out or Path("demo-out")
            made = _report(place, noise, oracle, quiet=quiet or as_json, with_runs=not bare)
        if as_json:
            print(json.dumps(made.facts(), indent=2))
        elif not quiet:
            print(made.text())
        options.warn_of_seed(made.settings)
        return
    if as_json or quiet:
        raise SettingError("--live prints where the map is; leave --json and --quiet away")
    if out is not None:
        raise SettingError(f"--live writes nothing to {out}; leave --out or --live away")
    with TemporaryDirectory() as folder:
        roads = _public_roads(Path(folder))
        settings = _settings(roads, noise, oracle)
        options.warn_of_seed(settings)
        raise typer.Exit(_show(settings, roads, pace, port, opens=opens))


def _public_roads(folder: Path) -> Path:
    """Write the streets of the city where those of generated data are looked for."""
    from retrasyn.data.writing_roads import roads_beside, write_roads
    from retrasyn.simulation.city import city_roads

    roads = roads_beside(folder / "real.parquet")
    write_roads(city_roads(), roads)
    return roads


def _settings(roads: Path, seed: int | Literal["random"], oracle: str) -> RunSettings:
    """Return the settings of a run on the streets of the city."""
    from retrasyn.roads.opening import open_map
    from retrasyn.run_settings import RunSettings
    from retrasyn.simulation.city import CITY_BOX
    from retrasyn.space import Grid

    known = open_map(CITY_BOX, roads=roads)
    return RunSettings.of(grid=Grid(CITY_BOX, 6), seed=seed, oracle=oracle, public_map=known)


def _show(settings: RunSettings, roads: Path, pace: float, port: int, *, opens: bool) -> int:
    """Synthesise the city on the live map; return the exit code."""
    from retrasyn.simulation.city import demo_city
    from retrasyn.simulation.run import SimulatedRun

    with watch.needing_serve():
        from retrasyn.service.settings import MapSettings
        from retrasyn.service.viewing.recordings import LiveSimulation
        from retrasyn.service.web.running import ViewerServer
    with ViewerServer(host=watch.HERE, port=port) as viewer_server:
        real = demo_city(seed=settings.public_seed or 0)
        live = LiveSimulation(
            SimulatedRun.of(real, settings), pace, "A small city, real and synthetic"
        )

        async def unfold() -> None:
            await live.run()
            print("The day is over; the map stays until Ctrl-C.", flush=True)

        return viewer_server.show(
            live.content(real),
            MapSettings(roads=roads, travellers=1000),
            announce=watch.announcing("The city is shown as it is made at", opens=opens),
            meanwhile=unfold,
        )


def _report(
    out: Path,
    noise: int | Literal["random"],
    oracle: str,
    *,
    quiet: bool,
    with_runs: bool,
) -> _Made:
    """Synthesise the city and write everything, with a report."""
    from retrasyn.data.writing_files import write
    from retrasyn.errors import OutputError
    from retrasyn.files import replacing
    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import evaluate_pair
    from retrasyn.receipts.files import receipt_place, write_with_receipt
    from retrasyn.report.page import check_available, write_report
    from retrasyn.report.uncertainty import CellErrors
    from retrasyn.simulation.city import demo_city
    from retrasyn.simulation.run import synthesize

    check_available()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"folder {out} cannot be made ({error.strerror}); name another with --out"
        ) from None
    seed = 0 if noise == "random" else noise  # of the city and the figures: a drawn one is noise's
    real = demo_city(seed=seed)
    settings = _settings(_public_roads(out), noise, oracle)
    errors = CellErrors(settings.grid.n_cells)
    with interruptible_progress(quiet) as progress:
        synthetic, receipt = synthesize(real, settings, progress=progress, on_release=errors.add)
    write(real, out / "real.parquet")
    with replacing(receipt_place(out / "synthetic.parquet")) as temporary:
        receipt = write_with_receipt(synthetic, receipt, out / "synthetic.parquet", temporary)
    pair = Pair.of(real, synthetic, settings.grid)
    scores = evaluate_pair(pair, seed=seed)
    terms = settings if with_runs else None
    baselines = comparing.score_baselines(real, pair, terms, quiet=quiet, seed=seed)
    report = out / "report.html"
    content = write_report(
        report,
        pair,
        scores,
        receipt=receipt.to_dict(),
        title="A small city, real and synthetic",
        span=20,
        top_cells=10,
        top_patterns=100,
        seed=seed,
        clock=real.clock,
        roads=settings.public_map.roads if settings.public_map else None,
        baselines=baselines,
        errors=errors,
    )
    return _Made(out, settings, receipt, scores, content, real.n_points)


@dataclass(frozen=True, slots=True)
class _Made:
    """What the demo made."""

    out: Path
    settings: RunSettings
    receipt: Receipt
    scores: Scores
    content: Content
    n_points: int

    def facts(self) -> dict[str, object]:
        """Return the results for programs."""
        return {
            "folder": str(self.out),
            "files": sorted(_FILES),
            "epsilon": self.receipt.epsilon,
            "window": self.receipt.window,
            "worst_window": self.receipt.worst_window.declared.epsilon,
            "verdict": {grade.use: grade.word for grade in self.content.grades},
            "scores": self.scores.to_dict(),
            "streets": self.content.data["streets"]["n"],
            "shared_flows": self.content.shared_flows[0],
            "fine_density_errors": self.content.data["fine"]["errors"],
        }

    def text(self) -> str:
        """Return the results for people."""
        receipt = self.receipt
        worst = receipt.worst_window.declared.epsilon
        n_streets = self.content.data["streets"]["n"]
        return f"""What happened
  {receipt.n_users:,} simulated commuters moved through a city for {receipt.timestamps} timestamps
  ({self.n_points:,} positions). Each reported rarely and noisily: {receipt.n_reports:,} reports
  in all, {receipt.n_reports / receipt.n_users:.1f} per person. From these alone
  {receipt.n_streams_out:,} synthetic trips with {receipt.n_points_out:,} points were made,
  one timestamp at a time. The map of the city is public: the trips drive on its
  {n_streets:,} streets.
What is protected
{_wrap(receipt.guarantee)}
  An independent recount found at most {worst:g} spent by anyone in any window.
What is not
{_bullets(receipt.not_protected)}
What it is good for
{_lines((grade.use, grade.word) for grade in self.content.grades)}
How close it is (0 is the same, 0.693 has nothing in common)
{self._figures()}
Look at
  {self.out / "report.html"} (not private: shows real data)
  {self.out / "synthetic.parquet"} and its .receipt.json"""

    def _figures(self) -> str:
        """Return a line for each of the figures that tell most."""
        scores, fine = self.scores, self.content.data["fine"]["errors"]
        n_shared, n_flows = self.content.shared_flows
        rows = [
            ("main flows that are the same", f"{n_shared} of {n_flows}"),
            ("density error, 6 x 6 cells", f"{scores.density_error:.4f}"),
            ("density error, 24 x 24 squares", f"{fine['24']:.4f}"),
            ("trips, from where to where", f"{scores.trip_error:.4f}"),
            ("durations of trips", f"{scores.duration_error:.4f}"),
        ]
        return _lines(rows)


def _wrap(text: str, first: str = "  ") -> str:
    return textwrap.fill(text, 92, initial_indent=first, subsequent_indent=" " * len(first))


def _lines(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"  {name:<32}{value:>10}" for name, value in rows)


def _bullets(items: tuple[str, ...]) -> str:
    return "\n".join(_wrap(item, "  - ") for item in items)
