"""The quiet style draws what it knows without words; an operator's own is checked."""

import json

import pytest

from retrasyn.errors import InputError
from retrasyn.service.basemap.style import TILES, read_style, style_of
from retrasyn.service.basemap.tiles import Tiles
from support.made_tiles import made, made_vector

OWN = {"version": 8, "sources": {}, "layers": []}


def styles(tiles):
    return [json.loads(style_of(tiles, theme)) for theme in ("light", "dark")]


def test_pictures_get_one_pale_layer(tmp_path):
    for style in styles(Tiles.open(made(tmp_path / "a.pmtiles"))):
        assert style["version"] == 8
        assert [layer["type"] for layer in style["layers"]] == ["background", "raster"]
        (source,) = style["sources"].values()
        assert source["tiles"] == [TILES]
        assert source["bounds"] == [116.15, 39.75, 116.6, 40.1]
        assert (source["minzoom"], source["maxzoom"]) == (0, 1)


def test_shapes_are_drawn_by_their_names_and_words_are_not(tmp_path):
    light, dark = styles(Tiles.open(made_vector(tmp_path / "a.pmtiles")))
    drawn = [(layer.get("source-layer"), layer["type"]) for layer in light["layers"]]
    assert drawn == [
        (None, "background"),
        ("earth", "fill"),
        ("landuse", "fill"),
        ("water", "fill"),
        ("waterway", "fill"),
        ("water", "line"),
        ("waterway", "line"),
        ("buildings", "fill"),
        ("boundaries", "line"),
        ("roads", "line"),
    ]
    assert "glyphs" not in light
    assert "sprite" not in light
    assert len({layer["id"] for layer in light["layers"]}) == len(light["layers"])
    assert light["layers"][0]["paint"] != dark["layers"][0]["paint"]


def test_layers_of_unknown_names_are_drawn_as_lines(tmp_path):
    tiles = Tiles.open(made_vector(tmp_path / "a.pmtiles", layers=["x1", "labels"]))
    for style in styles(tiles):
        assert [layer.get("source-layer") for layer in style["layers"]] == [None, "x1"]


def test_an_own_style_is_handed_on(tmp_path):
    path = tmp_path / "style.json"
    path.write_text(json.dumps(OWN, indent=2))
    assert json.loads(read_style(path, ())) == OWN


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 7}, "needs version 8"),
        ({"layers": None}, "needs version 8"),
        ({"glyphs": "https://a.org/{fontstack}"}, r"fetches from https://a\.org, which"),
        ({"sprite": [{"id": "a", "url": "https://b.org/s"}]}, "fetches from https://b"),
        ({"sources": {"a": {"type": "raster", "tiles": ["https://c.org/{z}"]}}}, "https://c"),
        ({"sources": {"a": {"type": "vector", "url": "pmtiles://city.pmtiles"}}}, "set map.tiles"),
    ],
)
def test_an_own_style_that_would_not_work_is_refused(tmp_path, change, says):
    path = tmp_path / "style.json"
    path.write_text(json.dumps(OWN | change))
    with pytest.raises(InputError, match=says):
        read_style(path, ())


def test_hosts_let_an_own_style_fetch_from_elsewhere(tmp_path):
    path = tmp_path / "style.json"
    path.write_text(json.dumps(OWN | {"glyphs": "https://a.tiles.org/{fontstack}"}))
    assert read_style(path, ("https://a.tiles.org",))
    assert read_style(path, ("https://*.tiles.org",))
    for wrong in ("https://b.tiles.org", "http://a.tiles.org", "https://*.org.evil"):
        with pytest.raises(InputError, match=r"add it to map\.hosts"):
            read_style(path, (wrong,))
