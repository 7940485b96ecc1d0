"""Small PMTiles files for tests, written with the writer of the format's own package."""

import gzip

from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import write

PICTURE = b"\x89PNG made up"
SHAPES = gzip.compress(b"made up shapes", mtime=0)
OTHER_SHAPES = gzip.compress(b"other shapes", mtime=0)
LAYERS = ["earth", "landuse", "water", "waterway", "buildings", "boundaries", "roads", "places"]


def made(path, *, kind=TileType.PNG, zipped=False, tiles=None, layers=LAYERS, compression=None):
    """Write a file with tiles at some places."""
    body, other = (SHAPES, OTHER_SHAPES) if zipped else (PICTURE, PICTURE[::-1])
    tiles = {(0, 0, 0): body, (1, 0, 0): body, (1, 1, 1): other} if tiles is None else tiles
    with write(str(path)) as writer:
        for place in sorted(tiles, key=lambda place: zxy_to_tileid(*place)):
            writer.write_tile(zxy_to_tileid(*place), tiles[place])
        header = {
            "tile_type": kind,
            "tile_compression": compression or (Compression.GZIP if zipped else Compression.NONE),
            "min_lon_e7": 1_161_500_000,
            "min_lat_e7": 397_500_000,
            "max_lon_e7": 1_166_000_000,
            "max_lat_e7": 401_000_000,
        }
        thanks = '<a href="https://example.org">© the makers</a>'
        fields = [{"id": name, "fields": {}} for name in layers]
        writer.finalize(header, {"attribution": thanks, "vector_layers": fields})
    return path


def made_vector(path, **options):
    """Write a file of shapes."""
    return made(path, kind=TileType.MVT, zipped=True, **options)
