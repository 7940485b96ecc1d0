"""Files of other makers: read as they are meant, or refused with a line that names the cure.

None is silently mistaken about who a person is: where that is a guess, a warning says so.
"""

import json
import sys

import pandas as pd
import polars as pl
import pytest

import retrasyn
from retrasyn.cli.pages import in_flags
from retrasyn.data.converting import ConversionWarning
from retrasyn.errors import InputError, MissingExtra
from support import foreign_files as made
from support.foreign_files import ANN, BEGIN, FIXES, LAT, LON, SECONDS, TIMES, USERS, by, text
from support.raw_files import rows_of

US = [pd.Timestamp(time).strftime("%m/%d/%Y %I:%M:%S %p") for time in TIMES]
DANISH = [pd.Timestamp(time).strftime("%d/%m/%Y %H:%M:%S") for time in TIMES]
GERMAN = [f"{x}".replace(".", ",") for x in LON], [f"{y}".replace(".", ",") for y in LAT]
BERLIN = [
    f"{pd.Timestamp(time, tz='UTC').tz_convert('Europe/Berlin').isoformat()}" for time in TIMES
]
CHECKIN = [pd.Timestamp(time).strftime("%a %b %d %H:%M:%S +0000 %Y") for time in TIMES]


def german(folder):
    rows = [f"{u};{t};{x};{y}" for u, t, x, y in zip(USERS, TIMES, *GERMAN, strict=True)]
    (folder / "messung.csv").write_text("\n".join(["user;time;lon;lat", *rows]))
    return folder / "messung.csv"


READ = {
    # libraries
    "pandas, csv with its index": (by(made.frame().to_csv, "a.csv"), {}),
    "pandas, parquet with times as index": (
        by(made.frame().set_index("time").to_parquet, "a.parquet"),
        {},
    ),
    "pandas, feather": (by(made.frame().to_feather, "a.feather"), {}),
    "pandas, json lines": (
        by(made.frame().to_json, "a.jsonl", orient="records", lines=True, date_format="iso"),
        {},
    ),
    "pandas, json": (
        by(made.frame().to_json, "a.json", orient="records", date_unit="ms", date_format="epoch"),
        {},
    ),
    "polars, parquet": (by(pl.from_pandas(made.frame()).write_parquet, "a.parquet"), {}),
    "polars, arrow": (made.lazy, {}),
    "polars, csv compressed": (
        made.zipped(by(pl.from_pandas(made.frame()).write_csv, "a.csv")),
        {},
    ),
    "duckdb, csv": (made.query("a.csv", "HEADER, DELIMITER '|'"), {}),
    "duckdb, parquet": (made.query("a.parquet", "FORMAT parquet, COMPRESSION zstd"), {}),
    "duckdb, json": (made.query("a.json", "FORMAT json, ARRAY true"), {}),
    "openpyxl, cells of dates": (
        made.excel(user=USERS, time=pd.to_datetime(TIMES), lon=LON, lat=LAT),
        {},
    ),
    "openpyxl, texts alone": (
        made.excel(user=USERS, time=TIMES, lon=list(map(str, LON)), lat=list(map(str, LAT))),
        {},
    ),
    "openpyxl, dates and times apart": (
        made.excel(
            user=USERS,
            day=[pd.Timestamp(time).date() for time in TIMES],
            hour=[pd.Timestamp(time).time() for time in TIMES],
            lon=LON,
            lat=LAT,
        ),
        {"date": "day", "clock": "hour"},
    ),
    "geopandas, geopackage": (by(made.geoframe().to_file, "a.gpkg"), {}),
    "geopandas, shapefile": (by(made.geoframe().to_file, "a.shp"), {}),
    "geopandas, shapefile zipped": (made.zipped(by(made.geoframe().to_file, "a.shp")), {}),
    "geopandas, flatgeobuf": (by(made.geoframe().to_file, "a.fgb"), {}),
    "geopandas, geoparquet": (by(made.geoframe().to_parquet, "a.parquet"), {}),
    "geopandas, feather": (by(made.geoframe().to_feather, "a.feather"), {}),
    "geopandas, geojson": (by(made.geoframe().to_file, "a.geojson"), {}),
    "geopandas, geojson lines": (
        by(made.geoframe().to_file, "a.geojsonl", driver="GeoJSONSeq"),
        {},
    ),
    # data sets and devices
    "GeoLife": (made.geolife, {}),
    "T-Drive": (
        text("ann.txt", "", "{u},{t},{x},{y}", [time.replace("T", " ") for time in TIMES]),
        {},
    ),
    "Movebank": (
        text(
            "storks.csv",
            "event-id,visible,timestamp,location-long,location-lat,sensor-type,"
            "individual-taxon-canonical-name,tag-local-identifier,individual-local-identifier",
            '7,true,{t}.000,{x},{y},"gps","Ciconia ciconia","5210","{u}"',
        ),
        {},
    ),
    "AIS, Denmark": (
        text(
            "aisdk.csv",
            "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Name",
            '{t},Class A,{u},{y},{x},"SHIP, THE"',
            DANISH,
        ),
        {},
    ),
    "AIS, United States": (
        text(
            "AIS_2020_12_31.csv", "MMSI,BaseDateTime,LAT,LON,SOG,VesselName", "{u},{t},{y},{x},1,A"
        ),
        {},
    ),
    "buses of GTFS-realtime, csv": (
        text(
            "buses.csv",
            "vehicle_id,trip_id,route_id,latitude,longitude,timestamp",
            "{u},T{u},7,{y},{x},{t}",
            SECONDS,
        ),
        {},
    ),
    "buses of GTFS-realtime, json": (made.buses, {"user": "vehicle.vehicle.id"}),
    "OwnTracks": (made.owntracks, {"user": "topic", "as": "owntracks/{}/phone"}),
    "Foursquare check-ins": (
        text("TKY.txt", "", "{u}\tv{u}\tc\tCafé\t{y}\t{x}\t540\t{t}", CHECKIN, encoding="utf-8"),
        {"user": "1", "y": "5", "x": "6", "time": "8", "time_format": "%a %b %d %H:%M:%S %z %Y"},
    ),
    "Brightkite and Gowalla": (
        text("checkins.txt", "", "{u}\t{t}Z\t{y}\t{x}\t88c46bf20db295831bd2d1718ad7e6f5"),
        {"user": "1", "time": "2", "y": "3", "x": "4"},
    ),
    "Cabspotting": (made.cabs, {"format": "csv", "user": "file", "y": "1", "x": "2", "time": "4"}),
    "Placemarks in a kmz": (made.kmz, {"user": "name"}),
    # ways to write
    "decimal commas": (german, {"decimal": ","}),
    "UTF-16": (
        text("excel.txt", "User\tTime\tLon\tLat", "{u}\t{t}\t{x}\t{y}", encoding="utf-16"),
        {},
    ),
    "a mark at the beginning": (
        text("a.csv", "User ID,Date Time,Lon,Lat", "{u},{t},{x},{y}", encoding="utf-8-sig"),
        {},
    ),
    "milliseconds": (
        text(
            "a.csv",
            "deviceId,ts,lng,lat",
            "{u},{t}",
            [f"{s}000,{x},{y}" for s, x, y in zip(SECONDS, LON, LAT, strict=True)],
        ),
        {},
    ),
    "seconds with a fraction": (text("a.csv", "uid,ts,lng,lat", "{u},{t}.0,{x},{y}", SECONDS), {}),
    "offsets": (text("a.csv", "uid,time,lng,lat", "{u},{t},{x},{y}", BERLIN), {}),
    "day first": (text("a.csv", "uid,time,lng,lat", "{u},{t},{x},{y}", DANISH), {}),
    "AM and PM": (text("a.csv", "uid,time,lng,lat", '{u},"{t}",{x},{y}', US), {}),
    "quoted commas": (
        text("a.csv", "uid,note,time,lng,lat", '{u},"so, it is ""here""",{t},{x},{y}'),
        {},
    ),
    "other columns twice": (text("a.csv", "uid,n,n,time,lng,lat", "{u},1,2,{t},{x},{y}"), {}),
    "dates as numbers": (
        text(
            "a.csv",
            "uid,time,lng,lat",
            "{u},{t},{x},{y}",
            [t.translate({45: "", 58: "", 84: ""}) for t in TIMES],
        ),
        {"time_format": "%Y%m%d%H%M%S"},
    ),
    "well-known text": (text("a.csv", "user_id;tracked_at;geom", "{u};{t};POINT ({x} {y})"), {}),
}
ONE_PERSON = {
    "a run of a watch, GPX": (made.gpx("ann.gpx", FIXES[:2]), {}),
    "a run of a watch, FIT": (made.watch, {}),
    "a phone's track, KML": (made.kml_track, {}),
    "Google's Records.json": (made.records, {"user": "file"}),
    "Moving Features": (made.moving_features("user"), {}),
}
GUESSED = {
    "a file for every run": (
        made.activities,
        {},
        ["each file", '`user="folder"`'],
    ),
    "trips": (text("a.csv", "trip_id,time,lon,lat", "{u},{t},{x},{y}"), {}, ["trip_id is a guess"]),
    "an id": (text("a.csv", "id,time,lon,lat", "{u},{t},{x},{y}"), {}, ["id is a guess"]),
    "the trips of buses": (made.buses, {}, ["vehicle.trip.trip_id is a guess"]),
    "MF-JSON without users": (made.moving_features("trip"), {}, ["trip is a guess"]),
    "rows with a number": (
        made.plain(
            "a.csv",
            "OBJECTID,time,x,y\n" + "".join(f"{n},2020-01-01 00:{n},1,2\n" for n in range(10, 22)),
        ),
        {},
        ["12 fixes have a user of their own"],
    ),
    "days of a spreadsheet": (
        made.plain("a.csv", "uid,time,x,y\na,44196.5451,1,2\na,44196.5521,1,2\n"),
        {},
        ["January 1970", "dates"],
    ),
    "a flight over the antimeridian": (
        made.plain(
            "a.csv", "uid,time,lon,lat\na,2020-01-01 00:00,179,1\na,2020-01-01 00:10,-179,1\n"
        ),
        {},
        ["180 degrees", "box"],
    ),
}
SWAPPED = text("a.csv", "uid,time,lat,lon", "{u},{t},11{x},{y}")
REFUSED = {
    "nobody": (text("a.csv", "time,lon,lat", "{t},{x},{y}"), ["user", "--user file"]),
    "Google's Records.json of nobody": (made.records, ["user", "--user file"]),
    "Google's Timeline.json": (
        made.plain("Timeline.json", json.dumps({"semanticSegments": [{"startTime": TIMES[0]}]})),
        ["Records.json"],
    ),
    "check-ins without a header": (
        text("checkins.txt", "", "{u}\t{t}Z\t{y}\t{x}\t1"),
        ["--user COLUMN", "no header", "'1', '2'"],
    ),
    "columns of anything, without a header": (
        text("a.csv", "", "{u},{t},{y},{x}", [time.replace("T", " ") for time in TIMES]),
        ["--user COLUMN", "no header"],
    ),
    "numbers without a header": (
        text("a.csv", "", "7,{t},4,5", SECONDS),
        ["--user COLUMN", "no header", "'1', '2'"],
    ),
    "decimal commas unsaid": (german, ["line 2", "--decimal ','"]),
    "either day or month": (
        text("a.csv", "uid,time,lng,lat", "{u},05/06/2020 10:00,{x},{y}"),
        ["'05/06/2020 10:00'", "--time-format '%d/%m/%Y %H:%M'"],
    ),
    "either day or month, with halves of the day": (
        text("a.csv", "uid,time,lng,lat", "{u},5.6.2020 9:05:10 PM,{x},{y}"),
        ["--time-format '%d.%m.%Y %I:%M:%S %p'", "--time-format '%m.%d.%Y %I:%M:%S %p'"],
    ),
    "dates in another column": (
        text("a.csv", "uid,day,time,lng,lat", "{u},2020-12-31,13:05:00,{x},{y}"),
        ["'13:05:00' is a time of day", "--date COLUMN and --clock COLUMN"],
    ),
    "a time nobody knows": (
        text("a.csv", "uid,time,lng,lat", "{u},{t},{x},{y}", CHECKIN),
        ["line 2", "--time-format", "--on-error skip"],
    ),
    "dates as numbers unsaid": (
        text("a.csv", "uid,time,lng,lat", "{u},20201231,{x},{y}"),
        ["line 2", "'20201231'", "--time-format"],
    ),
    "a column twice": (
        text("a.csv", "uid,time,lon,lon,lat", "{u},{t},{x},{x},{y}"),
        ["lon", "twice"],
    ),
    "nothing": (made.plain("a.csv", ""), ["empty"]),
    "a header alone": (made.plain("a.csv", "uid,time,lon,lat\n"), ["no fixes", "0 lines"]),
    "a place that is none": (
        text("a.csv", "uid,time,lon,lat", "{u},{t},NaN,{y}"),
        ["line 2", "lon 'NaN'", "--on-error skip"],
    ),
    "latitude and longitude swapped": (SWAPPED, ["beyond 90", "--x lat and --y lon"]),
    "Web Mercator called degrees": (
        text("a.csv", "uid,time,lon,lat", "{u},{t},946215{x},5983{y}"),
        ["beyond 90", "--from-crs"],
    ),
    "a degree sign": (text("a.csv", "uid,time,lon,lat", "{u},{t},{x}°,{y}°"), ["decimal numbers"]),
    "letters of the compass": (
        text("a.csv", "uid,time,lon,lat", "{u},{t},{x}E,{y}N"),
        ["decimal numbers", "minus"],
    ),
    "offsets and none": (
        text("a.csv", "uid,time,lon,lat", "{u},{t},{x},{y}", [BERLIN[0], *TIMES[1:]]),
        ["offset", "write all alike"],
    ),
    "two files in a zip": (
        made.zipped(
            text("a.csv", "uid,time,lon,lat", "{u},{t},{x},{y}"),
            text("b.csv", "uid,time,lon,lat", "{u},{t},{x},{y}"),
        ),
        ["2 files", "export/a.csv", "unpack it"],
    ),
    "a tar": (made.plain("a.csv.tar", b"a"), ["tar"]),
    "two layers": (made.two_layers, ["2 layers", "morning", "a file of its own"]),
    "lines without times": (made.lines, ["row 1", "point"]),
    "R": (made.plain("a.rds", b"\x1f\x8b"), [".rds", "write.csv"]),
    "MATLAB": (made.plain("a.mat", b"MATLAB 5.0"), [".mat", "writetable"]),
    "HDF5": (made.plain("a.h5", b"\x89HDF"), [".h5", "to_parquet"]),
    "SAS": (made.plain("a.sas7bdat", b"\0"), ["read_sas"]),
    "an old spreadsheet": (made.plain("a.xls", b"\xd0\xcf"), [".xlsx"]),
    "a database": (made.database, ["CSV"]),
    "a pickle": (made.pickled, ["never opened", "to_parquet"]),
    "an ending nobody knows": (made.plain("a.positions", b"1"), ["--format csv"]),
}


def spoken(options):
    """Return what `rows_of` takes, and how users are named."""
    options = dict(options)
    return options.pop("format", "auto"), options.pop("as", "{}"), options


@pytest.mark.parametrize("name", [*READ, *ONE_PERSON])
def test_a_foreign_file_is_read_as_it_is_meant(name, tmp_path):
    make, options = (READ | ONE_PERSON)[name]
    kind, user, options = spoken(options)
    path = make(tmp_path)

    rows = rows_of(path, kind, **options)

    expected = FIXES if name in READ else ANN
    if name == "Google's Records.json":
        expected = [("Records", *fix[1:]) for fix in ANN]
    rows = sorted((who, time, round(x, 6), round(y, 6)) for who, time, x, y in rows)
    assert rows == sorted((user.format(fix[0]), *fix[1:]) for fix in expected)
    real = retrasyn.convert(path, every="10min", format=kind, **options)  # a warning is an error
    assert real.clock.time_of(0).timestamp() == BEGIN // 600 * 600
    assert real.n_points == len(expected)


@pytest.mark.parametrize("name", GUESSED)
def test_what_may_be_another_person_or_time_is_a_warning(name, tmp_path):
    make, options, words = GUESSED[name]

    with pytest.warns(ConversionWarning) as caught:
        retrasyn.convert(make(tmp_path), every="10min", **options)

    told = " ".join(str(warning.message) for warning in caught)
    assert not [word for word in words if word not in told], told
    assert "--" not in told


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_cure(name, tmp_path):
    make, words = REFUSED[name]
    path = make(tmp_path)

    with pytest.raises(InputError) as caught:
        discretised(path)

    message = in_flags(str(caught.value))
    assert str(path) in message or name == "a header alone"
    assert "\n" not in message
    assert not [word for word in words if word not in message], message
    assert not (tmp_path / "opened").exists()


def discretised(path):
    """Read a file to its end, with the words of the command line."""
    from retrasyn.data.discretise import discretise
    from retrasyn.data.formats import read_fixes

    return discretise(read_fixes(path), every="10min")


def test_swapped_columns_are_cured_by_what_the_message_says(tmp_path):
    rows = rows_of(SWAPPED(tmp_path), x="lat", y="lon")

    assert rows[0][2:] == (118.5, 47.25)


def test_trips_are_cut_and_half_hours_counted_where_a_data_set_says_so(tmp_path):
    trips = rows_of(made.porto(tmp_path))
    (tmp_path / "yjmob.csv").write_text("uid,d,t,x,y\n7,0,47,80,90\n7,1,0,81,91\n")

    assert trips == [
        ("ann", "2020-12-31T13:05:00", 8.5, 47.25),
        ("ann", "2020-12-31T13:05:15", 8.625, 47.5),
    ]
    assert rows_of(tmp_path / "yjmob.csv") == [("7", 47, 80, 90), ("7", 48, 81, 91)]
    assert retrasyn.convert(tmp_path / "yjmob.csv").n_streams == 1


def test_runs_of_one_person_are_one_person_when_that_is_said(tmp_path):
    folder = made.activities(tmp_path)

    real = retrasyn.convert(folder, every="10min", user="folder")

    assert real.labels["user_id"].tolist() == ["activities"]


@pytest.mark.parametrize(("library", "suffix"), [("pyogrio", "gpkg"), ("fitdecode", "fit")])
def test_a_missing_library_says_what_to_type(library, suffix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    path = made.plain(f"a.{suffix}", b"")(tmp_path)

    with pytest.raises(MissingExtra) as caught:
        retrasyn.convert(path, every="10min")

    assert str(caught.value).startswith(f"{library} is not installed")
    assert str(caught.value).endswith('pip install "retrasyn[geo]"')


def test_forty_files_and_more_are_tried():
    assert len(READ) + len(ONE_PERSON) >= 40
    assert len(GUESSED) + len(REFUSED) >= 30
