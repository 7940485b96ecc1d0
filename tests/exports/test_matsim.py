"""Plans that MATSim's own rules allow."""

import gzip
import io

import numpy as np
import pytest
from lxml import etree

from retrasyn.exports.matsim import write_plans
from support.exported import CLOCK, METRES, city, in_degrees, plain

RULES = etree.DTD(
    io.StringIO("""
<!ELEMENT population (attributes?, person*)>
<!ATTLIST population desc CDATA #IMPLIED>
<!ELEMENT person (attributes?, plan*)>
<!ATTLIST person id CDATA #REQUIRED>
<!ELEMENT attributes (attribute*)>
<!ELEMENT attribute (#PCDATA)>
<!ATTLIST attribute name CDATA #REQUIRED class CDATA #REQUIRED>
<!ELEMENT plan (activity | leg)*>
<!ATTLIST plan score CDATA #IMPLIED type CDATA #IMPLIED selected (yes | no) "no">
<!ELEMENT activity (attributes?)>
<!ATTLIST activity type CDATA #REQUIRED x CDATA #IMPLIED y CDATA #IMPLIED link CDATA #IMPLIED
    facility CDATA #IMPLIED start_time CDATA #IMPLIED end_time CDATA #IMPLIED
    max_dur CDATA #IMPLIED>
<!ELEMENT leg (attributes?, route?)>
<!ATTLIST leg mode CDATA #REQUIRED dep_time CDATA #IMPLIED trav_time CDATA #IMPLIED>
<!ELEMENT route (#PCDATA)>
""")
)
"""What population_v6.dtd allows, without the attributes of persons that MATSim no longer reads."""


def read_population(text):
    root = etree.fromstring(text)
    assert RULES.validate(root), RULES.error_log
    assert root.getroottree().docinfo.system_url.endswith("/population_v6.dtd")
    return root


@pytest.mark.parametrize("turned", [lambda data: data, in_degrees], ids=["metres", "degrees"])
def test_a_person_drives_every_trip_in_metres_at_its_time(turned, tmp_path):
    real = city()

    trips = write_plans(turned(real), tmp_path / "plans.xml")

    root = read_population((tmp_path / "plans.xml").read_bytes())
    assert root.findtext("attributes/attribute") == METRES
    persons = root.findall("person")
    assert len(persons) == trips.n_trips > 60
    for place, person in enumerate(persons):
        origin, leg, destination = person.find("plan")
        assert person.get("id") == str(real.stream_ids[trips.streams[place]])
        assert leg.get("mode") == "car"
        for activity, row in ((origin, trips.first[place]), (destination, trips.last[place])):
            there = [float(activity.get(axis)) for axis in "xy"]
            assert np.allclose(there, [real.x[row], real.y[row]], atol=0.02)
        hours, minutes, seconds = map(int, origin.get("end_time").split(":"))
        assert 3600 * hours + 60 * minutes + seconds == int(trips.departures[place])
        assert destination.get("end_time") is None


def test_a_packed_file_holds_the_same_and_is_the_same_each_time(tmp_path):
    for name in ("plain.xml", "one.xml.gz", "two.xml.gz"):
        write_plans(city(), tmp_path / name)

    packed = (tmp_path / "one.xml.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "plain.xml").read_bytes()
    assert packed == (tmp_path / "two.xml.gz").read_bytes()


def test_a_name_is_written_as_it_is(tmp_path):
    write_plans(plain(traj_id=["<&\"'", "<&\"'", "b"], clock=CLOCK), tmp_path / "plans.xml")

    (person,) = read_population((tmp_path / "plans.xml").read_bytes()).findall("person")
    assert person.get("id") == "<&\"'"
