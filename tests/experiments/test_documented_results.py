"""The tables in the documents are what the code makes of the results beside them."""

import dataclasses
import re
from pathlib import Path
from statistics import mean

import pytest

from retrasyn.experiments.cells import Cell, Results
from retrasyn.experiments.published import published
from retrasyn.experiments.reproduction import Folder, Reproduction
from retrasyn.experiments.studies import STUDIES, Scope, cells_of
from retrasyn.metrics.suite import METRICS

README = Path(__file__).parents[2] / "README.md"
DOCUMENTS = README.parent / "docs" / "reproduction"
KEPT = [(DOCUMENTS, Scope(seeds=3)), (DOCUMENTS / "sanjoaquin", Scope(seeds=3, epsilons=(1.0,)))]
HEADLINE = (
    *("density_error", "transition_error", "query_error", "trip_error", "length_error"),
    *("hotspot_ndcg", "pattern_f1", "kendall_tau"),
)
PAGES = [
    pytest.param(folder, scope, page.stem, id=f"{folder.name}/{page.stem}")
    for folder, scope in KEPT
    for page in sorted(folder.glob("*.md"))
]


def work_in(path, scope):
    folder = Folder(path)
    return Reproduction(list(STUDIES.values()), [], folder, scope, list(folder.data.values()))


def test_every_study_has_its_page():
    assert {page.stem for page in DOCUMENTS.glob("*.md")} == set(STUDIES)


@pytest.mark.parametrize(("folder", "scope", "name"), PAGES)
def test_a_page_is_current(folder, scope, name):
    text = (folder / f"{name}.md").read_text("utf-8")
    assert work_in(folder, scope).text(STUDIES[name]) == text


def test_all_runs_of_tdrive_and_oldenburg_are_there():
    done = Folder(DOCUMENTS).cells.load()
    for study in STUDIES.values():
        wanted = cells_of(study, [name for name in study.data if name != "sanjoaquin"], Scope())
        assert [cell for cell in wanted if cell not in done] == []


def test_nobody_ever_spent_more_than_epsilon_unless_the_authors_reading_lets_them():
    for folder, _ in KEPT:
        for cell, row in Folder(folder).cells.load().items():
            if "worst_window" in row and not cell.faithful:
                assert row["worst_window"] <= cell.epsilon


def test_the_headline_of_the_readme_is_current():
    readme = README.read_text("utf-8")
    names = {"T-Drive": "tdrive", "Oldenburg": "oldenburg"}
    results = Results(Folder(DOCUMENTS).cells.load())
    n_rows = 0
    for line in readme.splitlines():
        found = re.match(r"\| (T-Drive|Oldenburg), `([\w-]+)`( as published)? \|(.*)\|$", line)
        if found is None:
            continue
        data, method = names[found[1]], found[2]
        for measure, text in zip(HEADLINE, found[4].split("|"), strict=True):
            values = results.values(measure, data=data, method=method)
            figure = published(measure, data=data, method=method) if found[3] else mean(values)
            assert text.strip(" *") == f"{figure:.3f}"
        n_rows += 1
    assert n_rows == 8


def test_steered_is_better_than_every_method_of_the_paper_everywhere():
    better = {metric.key: metric.better for metric in METRICS}
    sums: dict[tuple[Cell, str], list[float]] = {}
    for cell, row in Folder(DOCUMENTS).cells.load().items():
        for measure in HEADLINE:
            if measure in row:
                key = dataclasses.replace(cell, seed=0), measure
                sums.setdefault(key, []).append(row[measure])
    n_compared = 0
    for (cell, measure), values in sums.items():
        if cell.method.startswith("steered"):
            continue
        rival = dataclasses.replace(cell, method="steered", faithful=False)
        ours, theirs = mean(sums[rival, measure]), mean(values)
        assert ours < theirs if better[measure] == "smaller" else ours > theirs, (cell, measure)
        n_compared += 1
    assert f"all of its {n_compared:,} comparisons" in README.read_text("utf-8").replace("\n", " ")
