"""One service with a fleet for all tests of the map."""

import pytest

from support import live_service
from support.mapped import Mapped, Watched, fleet_of, wait_for_points


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A campaign with a round a second, in which 300 devices of the built-in city take part."""
    folder = tmp_path_factory.mktemp("map") / "service"
    with (
        live_service.service(folder, period=1, window=2, seed=5, name="Old town") as live,
        fleet_of(live, folder.parent / "fleet", devices=300),
    ):
        found = Mapped(live, int(live.url.rpartition(":")[2]))
        wait_for_points(found, 8)
        yield found


@pytest.fixture
def watched(browser):
    """Give a function that makes pages; what they opened is closed at the end."""
    pages = []

    def make(**options):
        pages.append(Watched(browser, **options))
        return pages[-1]

    yield make
    for page in pages:
        page.close()
