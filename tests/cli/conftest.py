"""Small inputs that many tests of the command line start from."""

import pytest

from retrasyn import demo_city, write
from support.command_line import TWO_STREAMS, write_table


@pytest.fixture
def small(tmp_path):
    """Two streams in the unit square."""
    return write_table(tmp_path / "small.csv", TWO_STREAMS)


@pytest.fixture(scope="session")
def city(tmp_path_factory):
    """Eighty commuters in the box 0,0,10,10, as Parquet without users."""
    path = tmp_path_factory.mktemp("city") / "city.parquet"
    write(demo_city(n_users=80, n_timestamps=60, seed=1), path)
    return path
