"""`Synthesis`: what `synthesize` returns, and what is usually done with it next."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError
from retrasyn.privacy.receipt import Receipt
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from retrasyn.answers.table import AnswerTable
    from retrasyn.metrics.suite import Scores
    from retrasyn.run_settings import RunSettings


class Synthesis(tuple[Trajectories, Receipt]):  # noqa: SLOT001 - it has three more
    """The result of `synthesize`, which unpacks into the synthetic trajectories and the receipt.

    For `evaluate` and `report` it keeps the real data and the settings; a copy has neither, so
    that what is stored or sent of it is no more than the release. `replicas` are trajectories,
    too, each read when it is asked for, and not copied either. The trajectories of a release in
    `parts` have no points: `retrasyn.read` finds them in the folder.

    >>> import retrasyn
    >>> real = retrasyn.demo_city(n_users=100, n_timestamps=30, seed=1)
    >>> result = retrasyn.synthesize(real, window=5, grid=4, box=(0, 0, 10, 10))
    >>> synthetic, receipt = result
    >>> synthetic is result.trajectories, result.evaluate().stream_ratio > 0
    (True, True)
    """

    real: Trajectories | None = None
    settings: RunSettings | None = None
    replicas: Sequence[Trajectories] = ()

    def __new__(
        cls,
        synthetic: Trajectories,
        receipt: Receipt,
        *,
        real: Trajectories | None = None,
        settings: RunSettings | None = None,
        replicas: Sequence[Trajectories] = (),
    ) -> Self:
        """Put both together."""
        self = super().__new__(cls, (synthetic, receipt))
        self.real, self.settings, self.replicas = real, settings, replicas
        return self

    def __getnewargs__(self) -> tuple[Trajectories, Receipt]:
        return self.synthetic, self.receipt

    def __getstate__(self) -> None:
        """Return nothing: the real data and the settings, with their seed, stay where they are."""

    @property
    def synthetic(self) -> Trajectories:
        """The synthetic trajectories."""
        return self[0]

    @property
    def trajectories(self) -> Trajectories:
        """The same."""
        return self[0]

    @property
    def receipt(self) -> Receipt:
        """What was promised and spent, and what is not protected."""
        return self[1]

    @property
    def grid(self) -> Grid:
        """The grid of the run."""
        return Grid(Box(*self.receipt.box), self.receipt.grid)

    def ask(self, what: str, **options: Any) -> AnswerTable:
        """Return the answer to a question, with standard errors if there are replicas.

        `options` are those of `retrasyn.ask`.
        """
        from retrasyn.answers.asking import ask  # noqa: PLC0415 - a synthesis asks nothing

        return ask(self, what, **options)

    def counts(self, **options: Any) -> Any:
        """Return how many people are present by zone and period, as a pandas DataFrame."""
        return self.ask("counts", **options).to_pandas()

    def od(self, **options: Any) -> Any:
        """Return how many trips lead from zone to zone, as a pandas DataFrame."""
        return self.ask("od", **options).to_pandas()

    def evaluate(self, real: Trajectories | None = None, **options: Any) -> Scores:
        """Compare with the real data, on the grid of the run; `options` are those of `evaluate`."""
        from retrasyn.metrics.suite import evaluate  # noqa: PLC0415 - a synthesis needs no metrics

        return evaluate(self._known(real), self, **options)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        real: Trajectories | None = None,
        title: str = "Synthetic and real trajectories",
        span: int = 20,
        seed: int = 0,
        top_cells: int = 10,
        top_patterns: int = 100,
        with_runs: bool = True,
    ) -> None:
        """Write a page that compares both (extra ``report``).

        It shows exact counts and a few trajectories of the real data: it is NOT private, and says
        so at its top. `with_runs` also shows how close the mean of all reports, `lpa` and `exact`
        come on the same data, which takes about as long as three releases.
        """
        from retrasyn.metrics.baselines import plain_baselines  # noqa: PLC0415 - as above
        from retrasyn.metrics.pair import Pair  # noqa: PLC0415 - as above
        from retrasyn.metrics.suite import evaluate_pair, folded_alike  # noqa: PLC0415 - as above
        from retrasyn.report.page import check_page, write_report  # noqa: PLC0415 - as above
        from retrasyn.simulation.baselines import run_baselines  # noqa: PLC0415 - it makes releases

        place, real = Path(path), folded_alike(self._known(real), self.receipt)
        check_page(place)
        pair = Pair.of(real, self.synthetic, self.grid)
        shown: dict[str, Any] = {
            "span": span,
            "seed": seed,
            "top_cells": top_cells,
            "top_patterns": top_patterns,
        }
        measure: Callable[..., Scores] = partial(evaluate_pair, **shown)
        baselines = plain_baselines(pair, measure, seed=seed)
        if with_runs and (terms := self._terms()) is not None:
            baselines |= run_baselines(real, terms, pair, measure, seed=seed)
        known = None if self.settings is None else self.settings.public_map
        write_report(
            place,
            pair,
            measure(pair),
            receipt=self.receipt.to_dict(),
            title=title,
            clock=real.clock,
            crs=real.crs,
            roads=None if known is None else known.roads,
            baselines=baselines,
            **shown,
        )

    def plot(self, *, ax: Any = None, n_paths: int = 60) -> Any:
        """Draw the synthetic trajectories over the grid of the run; return matplotlib's axes."""
        return self.synthetic.plot(ax=ax, grid=self.grid, n_paths=n_paths)

    def _terms(self) -> RunSettings | None:
        """Return the settings of the run, of a copy those that its receipt tells."""
        from retrasyn.simulation.baselines import settings_of_receipt  # noqa: PLC0415 - as above

        return self.settings or settings_of_receipt(self.receipt.to_dict())

    def _known(self, real: Trajectories | None) -> Trajectories:
        """Return the real data to compare with."""
        known = self.real if real is None else real
        if known is None:
            raise InputError("a copy of a result does not have the real data; give it as real=")
        return known

    def __repr__(self) -> str:
        return f"Synthesis({self.synthetic!r}, {self.receipt!r})"

    def _repr_html_(self) -> str:
        return self.receipt._repr_html_() + self.synthetic._repr_html_()
