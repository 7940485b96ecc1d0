"""Demand that SUMO's own rules allow, and that its own programs drive."""

import dataclasses
import gzip
import json
import re

import numpy as np
import pytest
import shapely
from lxml import etree

import retrasyn
from retrasyn.answers.zones import GridZones, open_zones
from retrasyn.data.writing_roads import write_roads
from retrasyn.errors import InputError, OutputError
from retrasyn.exports.sumo import write_demand
from retrasyn.space import Box, Grid
from support.exported import CLOCK, city, in_degrees, plain, roads, run_sumo, sumo_home

LOCATION = b"<location netOffset='0,0' projParameter='!'/>"


@pytest.fixture(scope="module")
def real():
    return city()


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    path = tmp_path_factory.mktemp("roads") / "city.roads.geojson"
    write_roads(roads(), path)
    return path


def zones_of(data, side=4):
    """Return a grid somewhat wider than the roads: lanes lie beside their middle."""
    x0, y0, x1, y1 = Box.around(data.x, data.y)
    beyond = (x1 - x0) / 20
    return GridZones.of(Grid(Box(x0 - beyond, y0 - beyond, x1 + beyond, y1 + beyond), side))


def read_valid(path, rules):
    """Return the root of a file that SUMO's schema allows."""
    root = etree.parse(path).getroot()
    schema = etree.XMLSchema(etree.parse(sumo_home() / "data" / "xsd" / rules))
    assert schema.validate(root), schema.error_log
    return root


def matrix_of(folder):
    """Return counts by hour, origin and destination."""
    return {
        (float(interval.get("begin")) / 3600, cell.get("from"), cell.get("to")): int(
            cell.get("count")
        )
        for interval in read_valid(folder / "od.xml", "datamode_file.xsd")
        for cell in interval
    }


def drive(folder, net, *, made):
    """Make a network, trips and routes, and drive them; return what a simulation counted."""
    quiet = "--no-step-log"
    if made:
        files = ("-n", "roads.nod.xml", "-e", "roads.edg.xml", "-o", net)
        run_sumo("netconvert", folder, *files, "--offset.disable-normalization")
    run_sumo("od2trips", folder, "-n", "taz.xml", "-z", "od.xml", "-o", "trips.xml", quiet)
    run_sumo(
        "duarouter", folder, "-n", net, "--route-files", "trips.xml", "-o", "routes.xml", quiet
    )
    told = ("--statistic-output", "told.xml", quiet)
    run_sumo("sumo", folder, "-n", net, "-r", "routes.xml", *told)
    return dict(etree.parse(folder / "told.xml").find("vehicles").attrib)


def driven(folder):
    """Return from where to where vehicles were sent, by hour."""
    found = {}
    for trip in etree.parse(folder / "trips.xml").getroot():
        hour = float(trip.get("depart")) // 3600
        key = (hour, trip.get("fromTaz"), trip.get("toTaz"))
        found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.system
@pytest.mark.parametrize("turned", [lambda data: data, in_degrees], ids=["metres", "degrees"])
def test_every_trip_is_driven_in_its_hour_from_zone_to_zone(turned, real, public, tmp_path):
    data = turned(real)

    demand = write_demand(data, tmp_path, zones_of(data), public)

    assert demand.n_outside == 0
    n = str(demand.trips.n_trips)
    told = drive(tmp_path, "roads.net.xml", made=True)
    assert told == {"loaded": n, "inserted": n, "running": "0", "waiting": "0"}
    assert driven(tmp_path) == matrix_of(tmp_path)


@pytest.mark.system
@pytest.mark.parametrize("turned", [lambda data: data, in_degrees], ids=["metres", "degrees"])
@pytest.mark.parametrize("suffix", [".net.xml", ".net.xml.gz"])
def test_a_network_of_sumo_is_driven_as_it_is(turned, suffix, real, public, tmp_path):
    write_demand(real, tmp_path, zones_of(real), public)
    net = tmp_path / f"own{suffix}"
    files = ("-n", "roads.nod.xml", "-e", "roads.edg.xml", "-o", net)
    run_sumo("netconvert", tmp_path, *files)  # which moves it to a corner of its own
    before, data = edges_by_zone(tmp_path), turned(real)

    demand = write_demand(data, tmp_path, zones_of(data), net)

    n = str(demand.trips.n_trips)
    assert drive(tmp_path, net, made=False)["inserted"] == n
    assert driven(tmp_path) == matrix_of(tmp_path)
    # Corners take a bit of each edge, so that some middles cross a border.
    there = edges_by_zone(tmp_path)
    assert there.keys() == before.keys()
    assert np.mean([there[edge] == before[edge] for edge in there]) > 0.9


def edges_by_zone(folder):
    zones = read_valid(folder / "taz.xml", "taz_file.xsd")
    return {edge.get("id"): zone.get("id") for zone in zones for edge in zone.iter("tazSource")}


def test_the_matrix_is_what_is_answered_when_asked(real, tmp_path):
    zones = zones_of(real)

    write_demand(real, tmp_path, zones, None)

    moving = real.lengths > 1
    rows = np.repeat(moving, real.lengths)
    trips = retrasyn.Trajectories.from_columns(
        traj_id=real.traj_id[rows], t=real.t[rows], x=real.x[rows], y=real.y[rows], clock=real.clock
    )
    asked = retrasyn.ask(trips, "od", zones=zones, by="1h").columns
    hours = (np.asarray(asked["time"]).astype("datetime64[h]").astype(int) + 2) % 24  # in summer
    expected = {
        (float(hour), str(origin), str(destination)): int(value)
        for hour, origin, destination, value in zip(
            hours, asked["origin"], asked["destination"], asked["value"], strict=True
        )
        if value
    }
    assert matrix_of(tmp_path) == expected
    assert {hour for hour, *_ in expected} == {5, 6, 7}


def test_files_are_what_sumo_allows(real, public, tmp_path):
    write_demand(real, tmp_path, zones_of(real), public)

    read_valid(tmp_path / "taz.xml", "taz_file.xsd")
    read_valid(tmp_path / "od.xml", "datamode_file.xsd")
    read_valid(tmp_path / "roads.edg.xml", "edges_file.xsd")
    read_valid(tmp_path / "roads.nod.xml", "nodes_file.xsd")


def test_one_ways_are_driven_one_way(real, tmp_path):
    ways = np.zeros(roads().n_edges, np.int8)
    ways[:2] = 1, -1
    write_roads(dataclasses.replace(roads(), one_way=ways), tmp_path / "roads.geojson")

    write_demand(real, tmp_path, zones_of(real), tmp_path / "roads.geojson")

    edges = read_valid(tmp_path / "roads.edg.xml", "edges_file.xsd")
    assert len(edges) == 2 * roads().n_edges - 2
    listed = {edge.get("id") for edge in edges}
    used = {edge.get("id") for edge in etree.parse(tmp_path / "taz.xml").iter("tazSource")}
    assert used <= listed


def test_a_zone_without_an_edge_uses_the_nearest(real, public, tmp_path):
    write_demand(real, tmp_path, zones_of(real, side=40), public)

    needed = {end for _, *ends in matrix_of(tmp_path) for end in ends}
    zones = {zone.get("id"): len(zone) for zone in etree.parse(tmp_path / "taz.xml").getroot()}
    assert all(zones[name] for name in needed)
    assert not all(zones.values())


def test_zones_are_named_as_sumo_can_read(tmp_path):
    features = [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": shapely.geometry.mapping(shapely.box(low, 0, high, 9)),
        }
        for name, low, high in (("Old town, west", 0, 3), ("Old town; west", 3, 9))
    ]
    path = tmp_path / "zones.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    data = plain(clock=CLOCK, x=[1.0, 5.0, 5.0])
    zones = open_zones(path, box=Box(0, 0, 9, 9))

    write_demand(data, tmp_path, zones, None)

    ((key, count),) = matrix_of(tmp_path).items()
    assert (key[1:], count) == (("0_Old_town__west", "1_Old_town__west"), 1)
    names = [zone.get("id") for zone in read_valid(tmp_path / "taz.xml", "taz_file.xsd")]
    assert all(re.fullmatch(r"[\w.:+-]+", name) for name in names)


def test_trips_outside_all_zones_are_counted_apart(real, tmp_path):
    x0, y0, x1, y1 = Box.around(real.x, real.y)
    zones = GridZones.of(Grid(Box(x0, y0, (x0 + x1) / 2, y1), 2))

    demand = write_demand(real, tmp_path, zones, None)

    assert sum(matrix_of(tmp_path).values()) == demand.trips.n_trips
    assert demand.n_outside > 0
    away = GridZones.of(Grid(Box(0, 0, 1, 1), 2))
    with pytest.raises(OutputError, match="no trip begins and ends in a zone"):
        write_demand(real, tmp_path, away, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<net>", "cannot be read as a SUMO network"),
        (b"", "cannot be read as a SUMO network"),
        (b"<net><edge id='a'><lane shape='0,0 1,1'/></edge></net>", "cannot be read .*netOffset"),
        (b"<net>%s<edge id='a'><lane/></edge></net>" % LOCATION, "cannot be read .*shape"),
        (b"<net>%s<edge id='a'><lane shape='a'/></edge></net>" % LOCATION, "cannot be read"),
        (b"<net>%s</net>" % LOCATION, "has no edge for cars"),
        (
            b"<net>%s<edge id='a'><lane shape='0,0 1,1' allow='tram'/></edge></net>" % LOCATION,
            "has no edge for cars",
        ),
    ],
)
def test_what_is_no_network_is_refused(content, said, real, tmp_path):
    net = tmp_path / "own.net.xml"
    net.write_bytes(content)
    with pytest.raises(InputError, match=f"own.net.xml {said}"):
        write_demand(real, tmp_path, zones_of(real), net)


def test_a_packed_network_that_is_cut_off_is_refused(real, tmp_path):
    net = tmp_path / "own.net.xml.gz"
    net.write_bytes(gzip.compress(b"<net/>" * 99)[:-9])
    with pytest.raises(InputError, match=r"own.net.xml.gz cannot be read"):
        write_demand(real, tmp_path, zones_of(real), net)
