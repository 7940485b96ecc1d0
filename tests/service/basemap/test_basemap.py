"""A base map as it was configured: its coordinates, its style, and whom the page may ask."""

import json

import pytest

from retrasyn.errors import InputError, SettingError
from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.settings import MapSettings, Settings, config_text
from retrasyn.space import Box
from support.made_tiles import made

CITY, BEIJING = Box(0, 0, 10, 10), Box(116.15, 39.75, 116.60, 40.10)
METRES, FAR = Box(12.9e6, 4.8e6, 13e6, 4.9e6), Box(0, 0, 1e9, 1e9)


def based(box, **changes):
    return BaseMap.open(MapSettings(**changes), box)


def test_nothing_lies_under_the_data_by_default():
    found = based(CITY)
    assert (found.style, found.styles, found.tiles, found.roads) == (None, {}, None, None)
    assert (found.origins, found.attribution, found.travellers) == ((), "", 3000)


@pytest.mark.parametrize(
    ("box", "alone", "under"),
    [
        (CITY, "plain", "degrees"),
        (BEIJING, "degrees", "degrees"),
        (METRES, "plain", "mercator"),
        (Box(-100, -80, 100, 80), "plain", "degrees"),
    ],
)
def test_coordinates_follow_the_box(box, alone, under):
    assert based(box).coordinates == alone
    assert based(box, style="https://example.org/style.json").coordinates == under


@pytest.mark.parametrize(
    ("box", "changes", "says"),
    [
        (FAR, {"style": "https://example.org/s.json"}, "neither in degrees nor in metres"),
        (BEIJING, {"style": "https://a.org/s", "coordinates": "plain"}, "no place on a base map"),
        (METRES, {"coordinates": "degrees"}, "map.coordinates='degrees' goes from"),
        (FAR, {"coordinates": "mercator"}, "set plain or auto"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(box, changes, says):
    with pytest.raises(SettingError, match=says):
        based(box, **changes)


def test_coordinates_that_fit_are_taken():
    assert based(BEIJING, coordinates="plain").coordinates == "plain"
    assert based(CITY, coordinates="degrees").coordinates == "degrees"
    assert based(METRES, coordinates="mercator").coordinates == "mercator"


def test_a_style_from_elsewhere_opens_the_policy_to_its_server_and_the_hosts():
    found = based(
        BEIJING,
        style="https://maps.example.org:8443/style.json?key=1",
        hosts=("https://tiles.example.org", "https://maps.example.org:8443"),
    )
    assert found.style == "https://maps.example.org:8443/style.json?key=1"
    assert found.styles == {}
    assert found.origins == ("https://maps.example.org:8443", "https://tiles.example.org")


def test_hosts_without_a_base_map_open_nothing():
    assert based(BEIJING, hosts=("https://tiles.example.org",)).origins == ()


def test_tiles_bring_their_style_and_their_thanks(tmp_path):
    found = based(BEIJING, tiles=made(tmp_path / "a.pmtiles"))
    assert found.style == "/v1/map/style.json"
    assert set(found.styles) == {"light", "dark"}
    assert found.attribution == "© the makers"
    assert found.origins == ()
    named = based(BEIJING, tiles=tmp_path / "a.pmtiles", attribution="Somebody")
    assert named.attribution == "Somebody"


def test_an_own_style_takes_the_place_of_the_quiet_one(tmp_path):
    own = {"version": 8, "sources": {}, "layers": [{"id": "a", "type": "background"}]}
    (tmp_path / "style.json").write_text(json.dumps(own))
    found = based(BEIJING, tiles=made(tmp_path / "a.pmtiles"), style=str(tmp_path / "style.json"))
    assert json.loads(found.styles["dark"]) == own
    assert found.style == "/v1/map/style.json"
    assert found.tiles is not None


def test_a_missing_style_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"map\.style .* cannot be read"):
        based(BEIJING, style=str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("map.hosts", "https://a.org/path", "setting map.hosts='https://a.org/path': a host is"),
        ("map.hosts", "a.org", "without a path"),
        ("map.hosts", "https://a.org; script-src *", "a host is written"),
        ("map.hosts", "https://a.org,*", "a host is written"),
        ("map.style", "https://", "setting map.style"),
        ("map.style", "https://a.org/s.json\nx", "setting map.style"),
        ("map.travellers", "10001", "setting map.travellers"),
        ("map.travellers", "-1", "setting map.travellers"),
        ("map.coordinates", "lonlat", "setting map.coordinates"),
        ("map.tile", "x", "did you mean tiles"),
    ],
)
def test_bad_values_are_refused_in_one_line(name, value, says):
    with pytest.raises(SettingError, match=says) as caught:
        Settings.load(None, {name: value})
    assert "\n" not in str(caught.value)


def test_settings_of_the_map_can_be_given_alone_and_stand_in_the_configuration(tmp_path):
    settings = Settings.load(None, {"hosts": "https://a.org,https://b.org", "travellers": "0"})
    assert settings.map.hosts == ("https://a.org", "https://b.org")
    assert settings.map.travellers == 0
    path = tmp_path / "curator.toml"
    path.write_text(config_text())
    assert Settings.load(path) == Settings()
    assert "[map]\n" in config_text()
