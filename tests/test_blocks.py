"""Every block of code of the documents runs, or says why not."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import retrasyn
from pages import ENVIRONMENT, GUIDES, ROOT, Reader, blocks_of, name_of

OPTIONS = ("--box", "0,0,10,10", "--window", "3")
PAGES = [path for path in GUIDES if any(block.is_run for block in blocks_of(path))]
NOT_RUN = {
    ("README.md", "make demo"),
    ("README.md", "pip install ."),
    ("docs/audit.md", "retrasyn audit window --unit transition"),
    ("docs/device.md", 'retrasyn device enrol "http://127.0.0.1:8700/#enrol=TOKEN"'),
    ("docs/gateway.md", 'retrasyn gateway "anna/phone=http://127.0.0.1:8700/#enrol=TOKEN" --host'),
    ("docs/index.md", 'pip install ".[report]"'),
    ("docs/map.md", "retrasyn serve --set map.tiles=city.pmtiles"),
    ("docs/operations.md", "python -m venv /opt/retrasyn"),
    ("docs/operations.md", "limit_req_zone"),
    ("docs/operations.md", "podman build -t retrasyn ."),
    ("docs/operations.md", "curator.example.org {"),
    ("docs/operations.md", 'pip install "retrasyn[serve,postgres]"'),
    ("docs/operations.md", "sqlite3 service/service.sqlite"),
    ("docs/planning.md", "retrasyn plan --users 31000"),
    ("docs/quickstart.md", "python -m venv .venv"),
    ("docs/reproduction.md", "retrasyn reproduce table3 --quick"),
    ("docs/reproduction.md", "retrasyn reproduce all --data"),
    ("docs/scaling.md", 'pip install "retrasyn[ray]"'),
}
"""Pages and how the blocks begin that no test runs; the reason stands above each."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the small files that pages speak of."""
    folder = tmp_path_factory.mktemp("files")
    real = retrasyn.demo_city(n_users=200, n_timestamps=8, seed=1)
    (folder / "demo-out").mkdir()
    for name in ("real", "trips", "demo-out/real"):
        retrasyn.write(real, folder / f"{name}.parquet")
    for name in ("synthetic", "demo-out/synthetic"):
        out = folder / f"{name}.parquet"
        command = ["retrasyn", "synthesize", folder / "real.parquet", "-o", out, *OPTIONS]
        subprocess.run([str(word) for word in command], env=ENVIRONMENT, check=True)
    for name in ("one", "other"):
        shutil.copy(folder / "synthetic.parquet", folder / f"{name}.parquet")
    line = '{"type": "LineString", "coordinates": [[0, 0], [9, 9]]}'
    (folder / "roads.geojson").write_text(
        f'{{"type": "Feature", "properties": {{}}, "geometry": {line}}}'
    )
    _raw_files(folder)
    return folder


def _raw_files(folder: Path) -> None:
    """Write one small file or folder of every format that the page of formats converts."""
    times = [f"2026-05-04 08:{minute:02}:00" for minute in range(0, 60, 4)]
    (folder / "taxi_log").mkdir()
    (folder / "taxi_log/1.txt").write_text("".join(f"1,{time},116.4,39.9\n" for time in times))
    plots = folder / "Geolife/Data/000/Trajectory"
    plots.mkdir(parents=True)
    rows = "".join(f"39.9,116.4,0,100,46146.3,{time.replace(' ', ',')}\n" for time in times)
    (plots / "day.plt").write_text("head\n" * 6 + rows)
    with gzip.open(folder / "tracks.csv.gz", "wt") as tracks:
        tracks.write("who,time,easting,northing\n")
        tracks.writelines(f"a,{time},1,2\n" for time in times)
    steps = "".join(f"point\t7\t2\t1\t{t}\t{t + 1}\t2\t1\t3\t3\n" for t in range(1, 5))
    (folder / "oldenburg.txt").write_text("newpoint\t7\t1\t1\t0\t1\t2\t1\t3\t3\n" + steps)
    points = "".join(
        f'<trkpt lat="39.9" lon="116.4"><time>{time.replace(" ", "T")}Z</time></trkpt>'
        for time in times
    )
    space = 'xmlns="http://www.topografix.com/GPX/1/1" version="1.1"'
    (folder / "walk.gpx").write_text(f"<gpx {space}><trk><trkseg>{points}</trkseg></trk></gpx>")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_of_a_page_works_in_the_order_it_is_shown(
    path: Path, files: Path, tmp_path: Path
) -> None:
    if path.name != "README.md":  # which begins with nothing, and makes what it needs
        shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    reader = Reader(tmp_path)
    reader.read(blocks_of(path))
    assert not reader.faults, "\n".join(reader.faults)
    if path.name == "README.md":
        row = r"^\| `([\w.]+\.(?:html|parquet|json))` \|"
        listed = re.findall(row, path.read_text(), re.MULTILINE)
        made = sorted(file.name for file in (tmp_path / "demo-out").iterdir())
        assert made == sorted(listed), "the demo makes the files the readme lists"


def test_the_blocks_that_are_not_run_are_these_and_each_has_a_reason() -> None:
    found = [block for path in GUIDES for block in blocks_of(path) if not block.is_run]
    for block in found:
        begins = block.text.removeprefix("$ ")
        assert len(block.words) >= len("installs")
        assert any(block.page == page and begins.startswith(words) for page, words in NOT_RUN), (
            begins
        )
    assert len(found) == len(NOT_RUN)


def test_no_fence_is_without_a_language_and_no_text_is_a_command() -> None:
    for path in GUIDES:
        text = path.read_text()
        assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(blocks_of(path)), path
        for block in blocks_of(path):
            assert block.language, f"{block.page}: {block.text[:60]}"
            is_command = re.match(r"(\$ |retrasyn |pip |make )", block.text)
            assert block.language != "text" or not is_command, block.text


def test_the_readme_begins_with_two_commands_and_has_python() -> None:
    blocks = blocks_of(ROOT / "README.md")
    assert blocks[0].commands == ["make demo", "make test"]
    assert any(block.language == "python" for block in blocks)
