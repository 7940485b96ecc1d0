"""The small files that pages speak of."""

import dataclasses
import gzip
import shutil
from pathlib import Path

import retrasyn
from retrasyn.data.metadata import Clock
from retrasyn.data.writing_roads import write_roads
from retrasyn.simulation.city import city_roads
from support import exported
from support.asked import write_zones
from support.command_line import run
from support.made_tiles import made_vector

_OPTIONS = ("--box", "0,0,10,10", "--window", "3", "--no-ledger")
_TRIPS = ("real", "trips", "tdrive", "oldenburg", "demo-out/real")


def make_files(folder: Path) -> None:
    """Write them all."""
    real = retrasyn.demo_city(n_users=200, n_timestamps=8, seed=1)
    (folder / "demo-out").mkdir()
    for name in _TRIPS:
        retrasyn.write(real, folder / f"{name}.parquet")
    run("synthesize", folder / "real.parquet", "-o", folder / "synthetic.parquet", *_OPTIONS)
    for name in ("one", "other"):
        shutil.copy(folder / "synthetic.parquet", folder / f"{name}.parquet")
    clock = Clock("2026-05-04T08:00:00+02:00", 900.0)
    retrasyn.write(dataclasses.replace(real, clock=clock), folder / "town.parquet")
    write_zones(folder / "districts.geojson")
    for path in folder.glob("synthetic.*"):
        shutil.copy(path, folder / "demo-out" / path.name)
    _map_files(folder)
    _raw_files(folder)
    retrasyn.write(exported.city(), folder / "release.parquet")
    write_roads(exported.roads(), folder / "town.geojson")


def _map_files(folder: Path) -> None:
    """Write roads and tiles, and a road network of a square and one diagonal."""
    line = '{"type": "LineString", "coordinates": [[0, 0], [9, 9]]}'
    (folder / "roads.geojson").write_text(
        f'{{"type": "Feature", "properties": {{}}, "geometry": {line}}}'
    )
    write_roads(city_roads(), folder / "city.roads.geojson")
    made_vector(folder / "city.pmtiles")
    (folder / "TG.cnode").write_text("0 0 0\n1 10 0\n2 10 10\n3 0 10\n")
    (folder / "TG.cedge").write_text("0 0 1 10\n1 1 2 10\n2 2 3 10\n3 3 0 10\n4 0 2 14.2\n")


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
