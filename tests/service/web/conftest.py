"""A service that many tests of a module share."""

import pytest

from support.living import living


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A service in its first round, with forty devices, nothing reported."""
    with living(tmp_path_factory.mktemp("service") / "folder") as one:
        one.devices = one.enrol(40)
        one.open_round(0)
        yield one
