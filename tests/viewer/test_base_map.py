"""A base map from a PMTiles file, drawn by the real MapLibre from the page's own server."""

import gzip
import io
import json

import pytest
from PIL import Image
from pmtiles.tile import Compression, TileType

from support import live_service
from support.made_tiles import made
from support.mapped import until
from support.recording import crowd
from support.showing import shown

pytestmark = pytest.mark.system

ZOOMS = range(13)
BEIJING = "116.15,39.75,116.6,40.1"
PLACE = 116.375, 39.925


def picture():
    """Return a tile that is orange all over."""
    kept = io.BytesIO()
    Image.new("RGB", (256, 256), (240, 120, 20)).save(kept, "PNG")
    return kept.getvalue()


def field(number, body):
    """Return a field of bytes as protocol buffers write it."""
    return bytes([number << 3 | 2, len(body)]) + body


def numbers(*values):
    """Return whole numbers as protocol buffers write them."""
    body = bytearray()
    for value in values:
        rest = value
        while rest > 127:
            body.append(rest & 127 | 128)
            rest >>= 7
        body.append(rest)
    return bytes(body)


def lake():
    """Return a vector tile whose only shape, in the layer water, fills it."""
    there, back = 2 * 4096, 2 * 4096 - 1  # as zigzag writes 4096 and -4096
    geometry = numbers(9, 0, 0, 26, there, 0, 0, there, back, 0, 15)
    shape = numbers(3 << 3, 3) + field(4, geometry)  # a polygon
    layer = field(1, b"water") + field(2, shape) + numbers(5 << 3, 4096, 15 << 3, 2)
    return gzip.compress(field(3, layer), mtime=0)


def around(zoom, lon, lat, tile):
    """Return the tile of a place and its neighbours at a zoom."""
    from math import asinh, pi, radians, tan

    n = 1 << zoom
    x = int((lon + 180) / 360 * n)
    y = int((1 - asinh(tan(radians(lat))) / pi) / 2 * n)
    return {
        (zoom, (x + right) % n, min(max(y + down, 0), n - 1)): tile
        for right in (-1, 0, 1)
        for down in (-1, 0, 1)
    }


@pytest.mark.parametrize("kind", ["pictures", "shapes"])
def test_tiles_are_drawn_and_come_from_the_pages_own_server(kind, tmp_path, watched):
    tile = picture() if kind == "pictures" else lake()
    tiles = {place: tile for zoom in ZOOMS for place in around(zoom, *PLACE, tile)}
    path = made(
        tmp_path / "city.pmtiles",
        kind=TileType.PNG if kind == "pictures" else TileType.MVT,
        compression=Compression.NONE if kind == "pictures" else Compression.GZIP,
        tiles=tiles,
        layers=["water"],
    )
    settings = {"period": 60, "box": BEIJING, "map.tiles": path}
    with live_service.service(tmp_path / "service", **settings) as live:
        one = watched()
        one.page.goto(live.url)
        until(one.page, "document.documentElement.dataset.map === 'empty'")
        until(
            one.page, "window.retrasyn.map.areTilesLoaded() && window.retrasyn.map.isStyleLoaded()"
        )
        drawn = {scheme: middle_of(one.page, scheme) for scheme in ("light", "dark")}
        assert [url for url in one.asked if "/v1/map/tiles/" in url]
        assert one.foreign(live.url) == []
        assert one.complaints == []
    ground = {"light": (243, 244, 241), "dark": (20, 25, 28)}
    assert all(distance(drawn[scheme], ground[scheme]) > 12 for scheme in drawn), drawn
    assert sum(drawn["light"]) > sum(drawn["dark"]), "the base map follows the theme"


def test_a_map_with_a_secret_in_its_address_asks_for_nothing_outside_of_it(tmp_path, watched):
    tiles = {place: picture() for zoom in ZOOMS for place in around(zoom, *PLACE, picture())}
    path = made(
        tmp_path / "city.pmtiles", kind=TileType.PNG, compression=Compression.NONE, tiles=tiles
    )
    box = tuple(map(float, BEIJING.split(",")))
    recorded, real = (crowd(seed, range(3), box=box) for seed in (1, 2))
    with shown(recorded, real, tiles=path) as live:
        url = f"http://{live.host}{live.prefix}"
        one = watched()
        page = one.go(f"{url}/")
        until(page, "window.retrasyn.map.areTilesLoaded() && window.retrasyn.map.isStyleLoaded()")
        page.evaluate(
            "const { store } = window.retrasyn;"
            "store.set({ layers: { ...store.now.layers, real: true } })"
        )
        until(page, "window.retrasyn.store.now.realFrame !== null")
        for part in ("/static/map/worker.js", "/v1/map/tiles/", "/v1/real/frames/", "/v1/feed"):
            assert [asked for asked in one.asked if part in asked], part
        assert one.foreign(url) == []
        assert one.complaints == []
        links = page.eval_on_selector_all(
            "a[href], link[href]", "all => all.map((one) => one.href)"
        )
        assert links
        assert not [link for link in links if not link.startswith(f"{url}/")]


def middle_of(page, scheme):
    """Return the colour beside the middle of the map, where no line of the grid is."""
    page.evaluate(f"window.retrasyn.store.set({{ theme: '{scheme}' }})")
    page.wait_for_timeout(300)
    until(page, "window.retrasyn.map.areTilesLoaded() && window.retrasyn.map.isStyleLoaded()")
    page.wait_for_timeout(300)
    with Image.open(io.BytesIO(page.locator("#map").screenshot())) as image:
        return image.convert("RGB").getpixel((image.width // 2 + 37, image.height // 2 + 170))


def distance(one, other):
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def test_labels_lie_above_the_cells_and_name_them(tmp_path, watched):
    town = {"type": "Point", "coordinates": PLACE}
    place = {"type": "Feature", "properties": {"name": "Old Town"}, "geometry": town}
    source = {"type": "geojson", "data": {"type": "FeatureCollection", "features": [place]}}
    ground = {"id": "ground", "type": "background", "paint": {"background-color": "#ffffff"}}
    words = {"text-field": ["get", "name"], "text-size": 24}
    label = {"id": "label", "type": "symbol", "source": "places", "layout": words}
    style = tmp_path / "style.json"
    style.write_text(
        json.dumps({"version": 8, "sources": {"places": source}, "layers": [ground, label]})
    )
    box = tuple(map(float, BEIJING.split(",")))
    with shown(crowd(1, range(2), box=box), style=str(style)) as live:
        one = watched(reduced_motion="reduce")
        page = one.go(f"http://{live.host}{live.prefix}/")
        page.evaluate(
            "const { store } = window.retrasyn;"
            "store.set({ opacity: 1, layers: { ...store.now.layers, travellers: false } })"
        )
        until(page, "[...window.retrasyn.store.now.names.values()].join() === 'Old Town'")
        pictures = []
        for shown_or_not in ("visible", "none"):
            page.evaluate(
                f"window.retrasyn.map.setLayoutProperty('label', 'visibility', '{shown_or_not}')"
            )
            page.wait_for_timeout(500)
            pictures.append(page.locator("#map").screenshot())
        assert one.complaints == []
    assert pictures[0] != pictures[1], "the label is seen although cells are opaque"
