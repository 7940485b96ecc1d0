"""JSON that others wrote: how deep it may be is our rule on every Python."""

import json
import sys

import pyarrow as pa
import pytest

from retrasyn.bounded_json import MAX_DEPTH, is_too_deep, parse_json
from retrasyn.cli.comparing import read_receipt
from retrasyn.cli.stream import _parse as parse_line
from retrasyn.client.gateway.messages import read_json as read_message
from retrasyn.client.owner import read_identity
from retrasyn.data.formats.geojson import Features
from retrasyn.data.geoparquet import crs_of, geometry_column
from retrasyn.data.metadata import Metadata
from retrasyn.device.memory import read_memory
from retrasyn.errors import InputError, LedgerError
from retrasyn.receipts.files import open_receipt
from retrasyn.service.basemap.style import read_document

DEEP = "[" * 5000 + "]" * 5000


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.fixture(params=["as it is", "able to read deeper"])
def interpreter(request):
    """Some Pythons can read the deep text, and some cannot."""
    limit = sys.getrecursionlimit()
    if request.param != "as it is":
        sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.parametrize("written", [str, str.encode])
def test_the_deepest_text_is_read_and_one_deeper_is_refused(written, interpreter):
    assert json.dumps(parse_json(written(nested(MAX_DEPTH)))) == nested(MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 5000, 100_000):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            parse_json(written(nested(depth)))


def test_objects_count_as_lists_do():
    for depth, deep in ((MAX_DEPTH, False), (MAX_DEPTH + 1, True)):
        value = json.loads('{"a":' * depth + "1" + "}" * depth)
        assert is_too_deep(value) is deep


def test_a_wide_text_is_not_a_deep_one():
    assert len(parse_json(json.dumps([[[1.5, 2.5]]] * 1000))) == 1000


def test_every_reader_refuses_a_deep_text_in_its_own_words(tmp_path, interpreter):
    path = tmp_path / "file.json"
    path.write_text(f'{{"format_version": {DEEP}}}')
    (tmp_path / "out.csv.receipt.json").write_text(DEEP)
    (tmp_path / "identity.json").write_text(f'{{"server": {DEEP}}}')
    schema = pa.schema([("geometry", pa.binary())], metadata={b"geo": DEEP.encode()})

    for read in (
        lambda: open_receipt(path),
        lambda: read_document("map.roads", path),
        lambda: read_receipt(tmp_path / "out.csv"),
        lambda: parse_line(f'{{"t":{DEEP},"traj_id":[],"x":[],"y":[]}}'.encode()),
        lambda: read_message(DEEP.encode(), now=0),
        lambda: Metadata.parse(f'{{"crs":{DEEP}}}'),
        lambda: geometry_column(schema),
        lambda: crs_of(schema, "geometry"),
    ):
        with pytest.raises(InputError):
            read()
    with pytest.raises(LedgerError):
        read_identity(tmp_path)
    with pytest.raises(ValueError, match="nested"):
        read_memory(DEEP)


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        f'{{"type":"FeatureCollection","crs":{{"a":{DEEP}}},"features":[]}}',
        f'{{"type":"FeatureCollection","features":[{{"properties":{DEEP}}}]}}',
        '{"type":"FeatureCollection","crs":{"a":},"features":[]}',
    ],
    ids=["alone", "before the features", "in a feature", "broken before the features"],
)
def test_features_that_are_nested_too_deeply_are_refused(text, tmp_path, interpreter):
    import io

    path = tmp_path / "in.geojson"
    with pytest.raises(InputError, match=r"in\.geojson, line 1: the JSON is"):
        list(Features(path, io.BytesIO(text.encode())))
