"""Whatever a file holds, reading it ends in fixes or in one line, never in a traceback."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrasyn.data.formats import FORMATS, Options, read_fixes
from retrasyn.errors import InputError
from support.raw_files import fit_file

MOVING = {
    "type": "Feature",
    "id": "a",
    "temporalGeometry": {
        "type": "MovingPoint",
        "coordinates": [[1, 2], [3, 4]],
        "datetimes": ["2020-01-01", "2020-01-02"],
    },
}
POINT = {
    "type": "Feature",
    "properties": {"id": "a", "t": "2020-01-01T00:00:00Z"},
    "geometry": {"type": "Point", "coordinates": [1, 2]},
}


def arrow_file():
    """Return the bytes of a small Arrow file."""
    table = pa.table({"id": ["a", "b"], "t": [1577836800, 1577836801], "x": [1, 2], "y": [1, 2]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue().to_pybytes()


SAMPLES = {
    "csv": "id,t,x,y\na,2020-01-01 00:00:00,1,2\nb,2020-01-01 00:00:00,1.5,2e1\n",
    "tdrive": "1,2008-02-02 15:36:08,116.51172,39.92123\n1,2008-02-02 15:46:08,116.5,39.9\n",
    "geolife": "\n" * 6 + "39.98,116.31,0,492,39744.12,2008-10-23,02:53:04\n",
    "porto": 'TRIP_ID,TAXI_ID,TIMESTAMP,POLYLINE\nT,2,1372636858,"[[-8.61,41.14],[-8,41]]"\n',
    "brinkhoff": "newpoint\t0\t1\t3\t0\t292.5\t15000\t1\t3\t4\npoint\t0\t1\t3\t1\t2\t15000\n",
    "gpx": '<gpx><trk><name>n</name><trkseg><trkpt lat="1" lon="2"><time>2020-01-01T00:00:00Z'
    "</time></trkpt></trkseg></trk></gpx>",
    "geojson": json.dumps({"type": "FeatureCollection", "features": [POINT, POINT]}),
    "mf-json": json.dumps({"type": "FeatureCollection", "features": [MOVING, MOVING]}),
    "kml": "<kml><Placemark><name>n</name><Track><when>2020-01-01T00:00:00Z</when>"
    "<coord>2 1 0</coord></Track></Placemark></kml>",
    "json": '{"id": "a", "t": 1577836800, "x": 1, "y": 2}\n{"id": "b", "t": 1577836801, "x": 1.5}',
    "yjmob": "uid,d,t,x,y\n0,0,3,79,86\n0,1,4,79,86\n",
    "fit": fit_file([(1577836800, 1, 2), (1577836801, 3, 4)]),
    "feather": arrow_file(),
    "parquet": "PAR1",
    "geoparquet": "PAR1",
    "vector": "SQLite format 3\0",
    "excel": "PK\3\4",
}
EDITS = [b"", b",", b"\n", b'"', b"\t", b"[", b"}", b"-", b"e9", b"e999", b"9" * 400, b"\xff"]
EDITS += [b"null", b"NaN", b"\x00", b"\r", b"1e400", b"Z", b"<", b"[[", b"{}", b"true", b" "]


def test_every_format_is_tried():
    assert set(SAMPLES) == set(FORMATS)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("mode", ["fail", "skip"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_file_gives_good_fixes_or_one_line(kind, mode, tmp_path, data):
    text = SAMPLES[kind] if isinstance(SAMPLES[kind], bytes) else SAMPLES[kind].encode()
    for _ in range(data.draw(st.integers(1, 3))):
        a = data.draw(st.integers(0, len(text)))
        b = data.draw(st.integers(a, min(a + 12, len(text))))
        text = text[:a] + data.draw(st.sampled_from(EDITS) | st.binary(max_size=3)) + text[b:]
    path = tmp_path / "in.txt"
    path.write_bytes(text)

    chunks, message = [], str(path)
    try:
        chunks = list(read_fixes(path, kind, Options(on_error=mode)))
    except InputError as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    for chunk in chunks:
        assert chunk.user.null_count == 0
        assert len(chunk.user) == chunk.time.size == chunk.x.size == chunk.y.size
        assert np.isfinite(chunk.x).all()
        assert np.isfinite(chunk.y).all()
