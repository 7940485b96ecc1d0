"""Files as other libraries, devices and data sets write them; most hold the same three fixes."""

from __future__ import annotations

import gzip
import importlib
import json
import sqlite3
import warnings
import zipfile

import duckdb
import geopandas
import gpxpy.gpx
import pandas as pd
import polars as pl

from support.raw_files import fit_file

FIXES = [
    ("ann", "2020-12-31T13:05:00", 8.5, 47.25),
    ("ann", "2020-12-31T13:15:00", 8.625, 47.5),
    ("bob", "2020-12-31T13:05:00", 8.75, 47.125),
]
BEGIN = 1_609_419_900  # 2020-12-31T13:05:00 as seconds since 1970
SECONDS = [BEGIN, BEGIN + 600, BEGIN]
USERS, TIMES, LON, LAT = (list(column) for column in zip(*FIXES, strict=True))
ANN = [("ann", *fix[1:]) for fix in FIXES[:2]]


def frame(**names):
    """Return the fixes as a frame; keywords rename user, time, lon and lat."""
    columns = {"user": USERS, "time": pd.to_datetime(TIMES), "lon": LON, "lat": LAT}
    return pd.DataFrame({names.get(name, name): cells for name, cells in columns.items()})


def geoframe(crs=4326):
    """Return the fixes as points."""
    points = geopandas.points_from_xy(LON, LAT, crs=4326).to_crs(crs)
    return geopandas.GeoDataFrame(frame()[["user", "time"]], geometry=points)


def text(name, header, lines, times=TIMES, **writing):
    """Return a maker of a text file; in a line, {u}, {t}, {x} and {y} stand for a fix."""

    def make(folder):
        rows = [
            lines.format(u=user, t=time, x=x, y=y)
            for user, time, x, y in zip(USERS, times, LON, LAT, strict=True)
        ]
        whole = "\n".join([*([header] if header else []), *rows]) + "\n"
        (folder / name).write_text(whole, newline="", **writing)
        return folder / name

    return make


def plain(name, content):
    """Return a maker of a file with this content."""

    def make(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder / name

    return make


def by(write, name, *args, **kwargs):
    """Return a maker that calls a writing method with the path of the file."""

    def make(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about names that Shapefiles shorten
            write(folder / name, *args, **kwargs)
        return folder / name

    return make


def query(name, options):
    """Return a maker that has duckdb copy the fixes to a file."""

    def make(folder):
        fixes = frame(user="vehicle_id", time="ts")
        assert len(fixes) == len(FIXES)
        duckdb.connect().execute(f"COPY (FROM fixes) TO '{folder / name}' ({options})")
        return folder / name

    return make


def gpx(name, fixes):
    """Return a maker of the GPX file of a watch."""

    def make(folder):
        track = gpxpy.gpx.GPXTrack(name="Morning Run")
        segment = gpxpy.gpx.GPXTrackSegment()
        for _, time, x, y in fixes:
            moment = pd.Timestamp(time, tz="UTC").to_pydatetime()
            segment.points.append(gpxpy.gpx.GPXTrackPoint(y, x, elevation=400, time=moment))
        track.segments.append(segment)
        whole = gpxpy.gpx.GPX()
        whole.tracks.append(track)
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(whole.to_xml())
        return path

    return make


def activities(folder):
    """Write the export of a person's runs: a file for each."""
    gpx("activities/1.gpx", FIXES[:1])(folder)
    gpx("activities/2.gpx", FIXES[1:2])(folder)
    return folder / "activities"


def kml_track(folder):
    """Write a track as Google's phones did."""
    whens = "".join(f"<when>{time}Z</when>" for _, time, _, _ in ANN)
    coords = "".join(f"<gx:coord>{x} {y} 0</gx:coord>" for _, _, x, y in ANN)
    (folder / "ann.kml").write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">'
        f"<Document><Placemark><name>a walk</name><gx:Track>{whens}{coords}</gx:Track></Placemark>"
        "</Document></kml>"
    )
    return folder / "ann.kml"


def kmz(folder):
    """Write timed Placemarks, named after persons, in a KMZ."""
    marks = "".join(
        f"<Placemark><name>{user}</name><TimeStamp><when>{time}Z</when></TimeStamp>"
        f"<Point><coordinates>{x},{y},0</coordinates></Point></Placemark>"
        for user, time, x, y in FIXES
    )
    with zipfile.ZipFile(folder / "trip.kmz", "w") as archive:
        archive.writestr("doc.kml", f"<kml><Document>{marks}</Document></kml>")
        archive.writestr("files/icon.png", b"")
    return folder / "trip.kmz"


def watch(folder):
    """Write what a sports watch recorded, compressed as an export has it."""
    data = fit_file(zip(SECONDS[:2], LON[:2], LAT[:2], strict=True))
    (folder / "ann.fit.gz").write_bytes(gzip.compress(data))
    return folder / "ann.fit.gz"


def zipped(*makers, name="all.zip"):
    """Return a maker of an archive of what others make, with a trace of a file manager."""

    def make(folder):
        inner = folder / "inner"
        inner.mkdir()
        for maker in makers:
            maker(inner)
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(inner.iterdir()):
                archive.write(path, f"export/{path.name}")
            archive.writestr("__MACOSX/._x.csv", b"")
        return folder / name

    return make


def geolife(folder):
    """Write the folders of GeoLife."""
    for user, time, x, y in FIXES:
        path = folder / "Data" / user / "Trajectory" / f"{time.replace(':', '')}.plt"
        path.parent.mkdir(parents=True, exist_ok=True)
        day, clock = time.split("T")
        path.write_text("Geolife trajectory\r\n" * 6 + f"{y},{x},0,492,44196.5,{day},{clock}\r\n")
    return folder / "Data"


def cabs(folder):
    """Write files as those of Cabspotting: latitude longitude occupied seconds."""
    for user, second, x, y in zip(USERS, SECONDS, LON, LAT, strict=True):
        with (folder / f"{user}.txt").open("a") as file:
            file.write(f"{y} {x} 0 {second}\n")
    return folder


def porto(folder):
    """Write trips with a point every 15 seconds."""
    trips = [("T1", "ann", BEGIN, [[8.5, 47.25], [8.625, 47.5]]), ("T2", "bob", BEGIN, [])]
    rows = [
        f'"{trip}","A","","","{user}","{at}","A","False","{json.dumps(places)}"'
        for trip, user, at, places in trips
    ]
    header = "TRIP_ID,CALL_TYPE,ORIGIN_CALL,ORIGIN_STAND,TAXI_ID,TIMESTAMP,DAY_TYPE,MISSING_DATA"
    (folder / "train.csv").write_text("\n".join([f"{header},POLYLINE", *rows]) + "\n")
    return folder / "train.csv"


def records(folder):
    """Write Records.json of Google's Takeout."""
    locations = [
        {"latitudeE7": int(y * 1e7), "longitudeE7": int(x * 1e7), "timestamp": f"{time}Z"}
        | {"source": "WIFI", "accuracy": 20, "activity": [{"activity": [{"type": "STILL"}]}]}
        for _, time, x, y in ANN
    ]
    (folder / "Records.json").write_text(json.dumps({"locations": locations}, indent=1))
    return folder / "Records.json"


def buses(folder):
    """Write a feed of GTFS-realtime as JSON."""
    entities = [
        {
            "id": str(number),
            "vehicle": {
                "trip": {"trip_id": f"T{number}", "route_id": "7"},
                "position": {"latitude": y, "longitude": x, "bearing": 90},
                "timestamp": second,
                "vehicle": {"id": user},
            },
        }
        for number, (user, second, x, y) in enumerate(zip(USERS, SECONDS, LON, LAT, strict=True))
    ]
    header = {"gtfs_realtime_version": "2.0", "timestamp": BEGIN}
    (folder / "feed.json").write_text(json.dumps({"header": header, "entity": entities}))
    return folder / "feed.json"


def owntracks(folder):
    """Write what a server of OwnTracks stores."""
    lines = [
        {"_type": "location", "topic": f"owntracks/{user}/phone", "lat": y, "lon": x, "tst": second}
        for user, second, x, y in zip(USERS, SECONDS, LON, LAT, strict=True)
    ]
    (folder / "2020-12.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder / "2020-12.jsonl"


def moving_features(name):
    """Return a maker of a collection of MovingPandas, whose streams are named by this column."""

    def make(folder):
        data = geoframe().set_index("time").rename(columns={"user": name})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it uses what pandas will drop
            movingpandas = importlib.import_module("movingpandas")
            collection = movingpandas.TrajectoryCollection(data[data[name] == "ann"], name)
            (folder / "ann.mfjson").write_text(json.dumps(collection.to_mf_json()))
        return folder / "ann.mfjson"

    return make


def excel(**columns):
    """Return a maker of a spreadsheet, as openpyxl writes it."""
    return by(pd.DataFrame(columns).to_excel, "fixes.xlsx", index=False, engine="openpyxl")


def two_layers(folder):
    """Write a GeoPackage of two layers."""
    for layer in ("morning", "evening"):
        geoframe().to_file(folder / "two.gpkg", layer=layer)
    return folder / "two.gpkg"


def lines(folder):
    """Write a GeoPackage of lines without times of their points."""
    places = geopandas.GeoSeries.from_wkt(["LINESTRING (8 47, 9 48)"], crs=4326)
    data = geopandas.GeoDataFrame({"user": ["ann"], "time": [TIMES[0]]}, geometry=places)
    data.to_file(folder / "lines.gpkg")
    return folder / "lines.gpkg"


def database(folder):
    """Write a database of SQLite."""
    connection = sqlite3.connect(folder / "positions.db")
    connection.execute("CREATE TABLE positions (user, time, lon, lat)")
    connection.close()
    return folder / "positions.db"


def pickled(folder):
    """Write a pickle that would leave a file if it were opened."""
    (folder / "frame.pkl").write_text(f"cbuiltins\nopen\n(V{folder / 'opened'}\nVw\ntR.")
    return folder / "frame.pkl"


def lazy(folder):
    """Write Arrow IPC as polars does."""
    pl.from_pandas(frame(user="uid", time="tracked_at")).write_ipc(
        folder / "fixes.arrow", compression="zstd"
    )
    return folder / "fixes.arrow"
