"""B7: who listens to an enrolment can forge nothing; and the curator's keys follow each other."""

import asyncio
import hashlib
import itertools
import json
import re
import time

import pytest

from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.owner import Owned, read_identity, read_link, write_link
from retrasyn.device.signatures import draw_x25519, share_x25519
from retrasyn.errors import ServerError, SettingError, WireError
from retrasyn.service.enrolment import NewDevice
from retrasyn.service.secrets import Secrets
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.wire.canonical import signed_part, unseal
from retrasyn.wire.frames import tag_of
from retrasyn.wire.keys import CuratorKeys, agreed_key, follow
from retrasyn.wire.texts import manifest_id
from support.living import living
from support.plain_curator import PlainCurator, serving, small_campaign
from support.tap import Tap


def link_of(live, url=None):
    """Return a new enrolment link, for a detour if there is one."""
    given = live.ask_operator("POST", "/v1/operator/tokens", {"n": 1}).json()
    return write_link(url or live.server.url, given["tokens"][0], bytes.fromhex(given["key"]))


def enrolled_in(folder, link):
    """Enrol a device, and return what it keeps."""
    with Owned(folder) as owned:
        owned.enrol(link, lambda _manifest: True)
    return read_identity(folder)


def overheard(heard):
    """Return every string of bytes that stands in what was heard, as it is or in digits."""
    found = {b"", bytes(32)}
    for digits in re.findall(rb"[0-9a-fA-F]{32,}", heard):
        found.add(bytes.fromhex(digits[: len(digits) // 2 * 2].decode()))
    for word in re.findall(rb"[\w.-]{16,}", heard):
        found.add(word)
    body = heard[-300:]
    found |= {body[place : place + 32] for place in range(len(body) - 31)}
    return found


def derivable(known, *, manifest, device):
    """Return the keys that a listener can make: cut, hashed, or derived as a device would."""
    pieces = {piece for one in known for piece in (one, one[:32], one[-32:])}
    publics = [piece for piece in pieces if len(piece) == 32]
    keys = {piece for piece in pieces if len(piece) >= 16}
    keys |= {hashlib.sha256(piece).digest() for piece in pieces}
    for shared, agreement in itertools.product(publics, publics[:4]):
        context = {"agreement": agreement, "public": shared, "manifest": manifest}
        keys.add(agreed_key(shared, device=device, **context))
    return keys


def test_who_listened_to_an_enrolment_forges_nothing(live, tmp_path):
    tap = Tap(live.server.url)
    victim = enrolled_in(tmp_path / "victim", link_of(live, tap.url))
    listener = enrolled_in(tmp_path / "listener", link_of(live))  # an enrolled device itself
    tap.close()
    heard = bytes(tap.kept) + bytes(tap.answered)
    assert victim.device.hex().encode() in heard
    assert victim.key not in heard
    assert victim.key.hex().encode() not in heard
    manifest = live.service.runtime.campaign.id
    known = overheard(heard) | {listener.key, listener.device}
    keys = derivable(known, manifest=manifest, device=victim.device)
    assert len(keys) > 500
    assert victim.key not in keys
    judge, now = live.service.runtime.admission.judge, live.clock.now()
    path = f"/v1/devices/{victim.device.hex()}"
    for key in keys:
        forged = NewDevice(victim.device, key)
        if len(key) >= 16:
            frames = live.report(forged, 0), live.heartbeat(forged, 0)
            assert judge(frames, now).statuses == ["unauthenticated"] * 2
    for key in itertools.islice(keys, 20):  # and over HTTP
        tag = tag_of(key, signed_part("leave", victim.device)).hex()
        assert live.ask("DELETE", path, Retrasyn_Tag=tag).status == 401
    genuine = NewDevice(victim.device, victim.key)
    assert live.send(live.report(genuine, 0)) == "accepted", "and nothing is lost"
    assert live.send(live.heartbeat(genuine, 0)) == "accepted"


def test_a_recorded_enrolment_sent_again_enrols_nobody(live, tmp_path):
    tap = Tap(live.server.url)
    enrolled_in(tmp_path / "one", link_of(live, tap.url))
    tap.close()
    (body,) = re.findall(rb"{[^}]*agreement[^}]*}", bytes(tap.kept))
    before = live.service.runtime.devices.n
    answer = live.ask("POST", "/v1/enrolments", body, content_type="application/json")
    assert (answer.status, live.service.runtime.devices.n) == (401, before)


def test_a_token_that_a_listener_uses_first_is_told_to_its_owner(live, tmp_path):
    link = link_of(live)
    enrolled_in(tmp_path / "thief", link)
    with pytest.raises(ServerError, match="somebody has used it already"):
        enrolled_in(tmp_path / "owner", link)
    assert read_identity(tmp_path / "owner") is None


def test_whoever_answers_in_the_curators_place_is_refused_before_the_token_is_sent(tmp_path):
    with serving(PlainCurator(small_campaign())) as thief:
        token = thief.token()
        link = write_link(thief.url, token, PlainCurator(small_campaign()).public)
        with pytest.raises(WireError, match="not the curator whose key"):
            enrolled_in(tmp_path / "owner", link)
        assert token in thief.tokens
    assert read_identity(tmp_path / "owner") is None


def test_whoever_takes_the_enrolment_over_under_way_is_refused(tmp_path):
    """It passes on what the curator signed, and agrees by a key of its own."""
    with serving(PlainCurator(small_campaign())) as thief:
        link = thief.link()
        statement = thief.statement()
        thief.pair = draw_x25519()
        thief.statement = lambda: statement
        with pytest.raises(ServerError, match="cannot show that it has the curator's key"):
            enrolled_in(tmp_path / "owner", link)
    assert read_identity(tmp_path / "owner") is None


def test_a_manifest_that_the_links_key_did_not_sign_is_not_even_shown(tmp_path):
    with serving(PlainCurator(small_campaign())) as curator:
        curator.sign = lambda _kind, text: PlainCurator.sign(other, "manifest", text)
        other, shown = PlainCurator(small_campaign()), []
        with Owned(tmp_path) as owned, pytest.raises(WireError, match="not signed by the curator"):
            owned.enrol(curator.link(), shown.append)
    assert not shown


@pytest.mark.system
def test_ten_thousand_devices_agree_at_once(live):
    n, campaign = 10_000, live.service.runtime.campaign
    given = live.ask_operator("POST", "/v1/operator/tokens", {"n": n}).json()
    agreement, before = campaign.ring.agreement.public, time.process_time()
    with CuratorClient(live.server.url) as server:
        made = server.enrol(given["tokens"], agreement=agreement, manifest=campaign.id)
    spent = time.process_time() - before
    assert len({one.key for one in made}) == n
    start = time.process_time()
    for _ in range(200):
        share_x25519(*draw_x25519())
    both_sides = 2 * n * (time.process_time() - start) / 200
    assert spent < 3 * both_sides + 2, "little more than the arithmetic itself"
    assert live.send(live.heartbeat(NewDevice(made[-1].device, made[-1].key), 0)) == "accepted"


def rotated(folder, now, overlap):
    secrets = Secrets.open(folder)
    try:
        return secrets.rotate(now, overlap=overlap)
    finally:
        secrets.close()


def meet(live, known, verify):
    return follow(known, live.ask("GET", "/v1/keys").body, verify)


def test_a_campaign_goes_on_under_new_keys_and_devices_follow(tmp_path):
    from retrasyn.device.signatures import verify_ed25519 as verify

    folder = tmp_path / "service"
    with living(folder) as live:
        link, campaign = link_of(live), live.service.runtime.campaign
        first = campaign.ring.signer.public
        old = enrolled_in(tmp_path / "old", link_of(live))
        live.open_round(0)
        assert live.send(live.heartbeat(NewDevice(old.device, old.key), 0)) == "accepted"
        now = live.clock.now()
    for _ in range(2):  # it is offline during two rotations
        rotated(folder, now, 3600)
    with living(folder, now=now) as live:
        after = live.service.runtime.campaign
        assert (after.id, after.text) == (campaign.id, campaign.text), "the same campaign"
        second = after.ring.signer.public
        assert second not in (first, campaign.manifest.key)
        keys, agreement = meet(live, old.curator, verify)
        assert (keys.key, keys.until) == (second, int(now + 3600))
        text, signature = unseal(live.ask("GET", "/v1/campaign").body)
        assert manifest_id(text) == campaign.id
        assert keys.signed("manifest", text, signature, verify=verify, now=int(now))
        assert not verify(first, signed_part("manifest", text), signature)
        live.open_round(1)
        body, signature = unseal(live.ask("GET", "/v1/rounds/current").body)
        assert keys.signed("round", body, signature, verify=verify, now=int(now))
        assert live.send(live.heartbeat(NewDevice(old.device, old.key), 1)) == "accepted"
        moved = write_link(live.server.url, *read_link(link)[1:])  # another port, the same link
        by_old_link = enrolled_in(tmp_path / "late", moved)
        assert by_old_link.curator == CuratorKeys(second, keys.before, int(now + 3600))
        url, token, key = read_link(link_of(live))
        assert (url, key) == (live.server.url, second)
        before = after.ring.before[0].public
        with CuratorClient(live.server.url) as server:
            (overlapping,) = server.enrol([token], agreement=before, manifest=campaign.id)
        one = NewDevice(overlapping.device, overlapping.key)
        assert live.send(live.heartbeat(one, 1)) == "accepted", "agreed by the key before"
        live.clock.set(now + 3601)
        _, token, _ = read_link(link_of(live))
        with (
            CuratorClient(live.server.url) as server,
            pytest.raises(ServerError, match="answers 409"),
        ):
            server.enrol([token], agreement=before, manifest=campaign.id)
        assert agreement == after.ring.agreement.public


def test_once_the_overlap_is_over_the_old_agreement_key_is_gone(tmp_path):
    folder, now = tmp_path / "service", 1_700_000_040.0
    with living(folder):
        pass
    rotated(folder, now, 100)
    with living(folder, now=now + 99) as live:
        assert live.service.runtime.campaign.ring.before is not None
    with living(folder, now=now + 100) as live:
        assert live.service.runtime.campaign.ring.before is None
        assert len(live.service.runtime.campaign.ring.successions) == 1


@pytest.mark.parametrize("kept", ["one key", "a key followed in version 2"])
def test_keys_of_an_earlier_wire_version_are_refused_with_one_line(kept, tmp_path):
    text = "ab" * 32
    if kept != "one key":
        fields = {"signing": text, "agreement": text, "before": None}
        text = json.dumps(fields | {"successions": [(b"\2" + bytes(136)).hex()]})
    (tmp_path / "curator.key").write_text(text + "\n")
    with pytest.raises(SettingError, match=r"earlier wire version than 3.*another --folder"):
        asyncio.run(Service(Settings.load(None, {"folder": str(tmp_path)})).start())


def test_a_succession_that_somebody_else_signed_is_not_followed(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with serving(PlainCurator(small_campaign())) as curator, Owned(tmp_path) as owned:
        owned.enrol(curator.link(), lambda _manifest: True)
        known = read_identity(tmp_path).curator
        curator.rotate(until=2**40, signer=Ed25519PrivateKey.generate())
        with (
            CuratorClient(curator.url) as server,
            pytest.raises(WireError, match="not signed by the one before"),
        ):
            owned.campaign(server)
        assert read_identity(tmp_path).curator == known
        curator.successions.clear()
        with (
            CuratorClient(curator.url) as server,
            pytest.raises(WireError, match="not the curator"),
        ):
            owned.campaign(server)


def test_leaving_is_believed_only_if_the_curator_confirms_it(tmp_path):
    with serving(PlainCurator(small_campaign())) as curator, Owned(tmp_path) as owned:
        owned.enrol(curator.link(), lambda _manifest: True)
        (device,) = curator.devices
        key = curator.devices.pop(device)
        with pytest.raises(ServerError, match="does not confirm"):
            owned.leave()
        assert read_identity(tmp_path) is not None
        curator.devices[device] = key
        assert owned.leave()
        assert (read_identity(tmp_path), curator.devices) == (None, {})
