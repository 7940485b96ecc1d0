"""Zones by their names: those of the grid, of H3, and of one file; never another file."""

import json

import pytest

from retrasyn import Box, Grid
from retrasyn.errors import InputError, SettingError
from retrasyn.service.settings import MapSettings
from retrasyn.service.viewing.known_zones import KnownZones
from retrasyn.service.viewing.recordings import InMemory

DEGREES = InMemory(Grid(Box(116.3, 39.8, 116.5, 40.0), 4))


def districts(folder, name="districts.geojson"):
    ring = [[116.3, 39.8], [116.4, 39.8], [116.4, 40.0], [116.3, 40.0], [116.3, 39.8]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {"name": "west"}, "geometry": shape}
    (folder / name).write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return folder / name


def test_each_kind_of_zones_has_a_name(tmp_path):
    known = KnownZones.of(DEGREES, MapSettings(zones=districts(tmp_path)))
    assert known.named("cells").n_zones == 16
    assert known.named("grid:3").n_zones == 9
    assert known.named("h3:6").n_zones > 3
    assert known.named("districts").names == ["west"]
    assert known.named("districts") is known.named("districts"), "opened once"


@pytest.mark.parametrize("name", ["", "west", "districts.geojson", "../districts", "GRID:3"])
def test_any_other_name_is_refused_even_one_of_a_file(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = KnownZones.of(DEGREES, MapSettings(zones=districts(tmp_path)))
    districts(tmp_path, "other.geojson")
    for asked in (name, "other.geojson", str(tmp_path / "other.geojson")):
        with pytest.raises(SettingError, match="zones are cells, grid:K, h3:RES, districts; write"):
            known.named(asked)


def test_a_file_that_is_missing_or_no_zones_is_refused_at_the_start(tmp_path):
    for content in (None, "", "{}"):
        path = tmp_path / "zones.geojson"
        if content is not None:
            path.write_text(content)
        with pytest.raises(InputError, match=r"zones\.geojson"):
            KnownZones.of(DEGREES, MapSettings(zones=path))
