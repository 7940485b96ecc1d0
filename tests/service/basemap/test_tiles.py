"""Tiles come out as they were put in, and damaged files are refused or passed over."""

import gzip

import numpy as np
import pytest
from pmtiles.tile import Compression, TileType, zxy_to_tileid

from retrasyn.errors import InputError
from retrasyn.service.basemap.tiles import Tiles
from support.made_tiles import PICTURE, SHAPES, made, made_vector


def test_tiles_are_read_as_they_are_stored(tmp_path):
    tiles = Tiles.open(made(tmp_path / "a.pmtiles"))
    assert (tiles.media_type, tiles.vector, tiles.zipped) == ("image/png", False, False)
    assert tiles.tile(0, 0, 0) == tiles.tile(1, 0, 0) == PICTURE
    assert tiles.tile(1, 1, 1) == PICTURE[::-1]
    assert tiles.tile(1, 0, 1) is tiles.tile(7, 3, 3) is tiles.tile(0, 5, 5) is None


def test_zipped_shapes_stay_zipped_until_somebody_cannot_unzip(tmp_path):
    tiles = Tiles.open(made_vector(tmp_path / "a.pmtiles"))
    assert tiles.vector
    assert tiles.zipped
    assert tiles.tile(0, 0, 0) == SHAPES
    assert tiles.unzip(SHAPES) == b"made up shapes"
    assert tiles.unzip(b"damaged") == b""


def test_tiles_behind_leaves_of_the_directory_are_found(tmp_path):
    dice = np.random.default_rng(0)  # of many lengths, so that the directory cannot be zipped away
    places = [(8, x, y) for x in range(128) for y in range(128)]
    bodies = {place: dice.bytes(dice.integers(8, 300)) for place in places}
    tiles = Tiles.open(made(tmp_path / "a.pmtiles", tiles=bodies))
    assert tiles.header["leaf_directory_length"] > 0
    for place in places[:: len(places) // 50]:
        assert tiles.tile(*place) == bodies[place]
    assert tiles.tile(8, 200, 200) is None


def test_a_tile_whose_bytes_are_cut_off_is_none(tmp_path):
    path = made(tmp_path / "a.pmtiles")
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    tiles = Tiles.open(path)
    assert tiles.tile(0, 0, 0) == PICTURE
    assert tiles.tile(1, 1, 1) is None


@pytest.mark.parametrize("body", [b"", b"PMTiles", b"PMTiles\x02" + bytes(200), b"x" * 500])
def test_what_is_no_file_of_tiles_is_refused(tmp_path, body):
    path = tmp_path / "a.pmtiles"
    path.write_bytes(body)
    with pytest.raises(InputError, match=r"map\.tiles .*a\.pmtiles is no PMTiles file"):
        Tiles.open(path)


def test_every_cut_and_every_changed_byte_of_the_front_is_survived(tmp_path):
    whole = made_vector(tmp_path / "whole.pmtiles").read_bytes()
    path = tmp_path / "broken.pmtiles"
    variants = [whole[:n] for n in range(0, len(whole), 7)]
    variants += [whole[:n] + bytes([whole[n] ^ 0xFF]) + whole[n + 1 :] for n in range(240)]
    for body in variants:
        path.write_bytes(body)
        try:
            tiles = Tiles.open(path)
        except InputError:
            continue
        for place in ((0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 3, 3)):
            found = tiles.tile(*place)
            assert found is None or isinstance(found, bytes)


def test_missing_files_folders_and_rare_kinds_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        Tiles.open(tmp_path / "none.pmtiles")
    with pytest.raises(InputError):
        Tiles.open(tmp_path)
    odd = made(tmp_path / "odd.pmtiles", compression=Compression.BROTLI)
    with pytest.raises(InputError, match="use gzip or none"):
        Tiles.open(odd)
    with pytest.raises(InputError, match="unknown kind"):
        Tiles.open(made(tmp_path / "kind.pmtiles", kind=TileType.UNKNOWN))


def test_the_made_up_tiles_are_what_the_package_reads(tmp_path):
    from pmtiles.reader import MmapSource, Reader

    with made_vector(tmp_path / "a.pmtiles").open("rb") as file:
        assert gzip.decompress(Reader(MmapSource(file)).get(0, 0, 0)) == b"made up shapes"
    assert zxy_to_tileid(0, 0, 0) == 0
