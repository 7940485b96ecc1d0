"""Enrolled devices for tests of the service: who they are, and what they send."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from retrasyn.messages import MOVING, Heartbeat, Question, Report
from retrasyn.service.admission.admission import Admission
from retrasyn.service.store import RoundRow
from retrasyn.wire import encode_heartbeat, encode_report
from retrasyn.wire.frames import body_bytes, n_answers, question_code
from support.campaigns import Campaign, manifest_of


@dataclass
class Senders:
    """Devices 0 .. n - 1 of a campaign."""

    n: int
    campaign: Campaign = field(default_factory=lambda: Campaign(manifest_of()))

    @classmethod
    def of(cls, n: int, **changes: Any) -> Senders:
        return cls(n, Campaign(manifest_of(**changes)))

    @property
    def manifest(self):
        return self.campaign.manifest

    def device(self, key):
        return hashlib.sha256(b"device %d" % key).digest()[:16]

    def secret(self, key):
        return hashlib.sha256(b"secret %d" % key).digest()

    def admission(self, *rounds, **changes):
        """Return a admission that knows everybody and has opened some rounds."""
        admission = Admission(self.manifest, self.campaign.id)
        for key in range(self.n):
            admission.add_device(key, self.device(key), self.secret(key))
        for t in rounds:
            admission.open_round(self.row(t, **changes))
        return admission

    def row(self, t, *, drawn=None, **changes):
        asked = self.campaign.round_of(t, **changes)
        return RoundRow(
            t=t,
            epsilon=asked.epsilon,
            portion=asked.portion,
            ends=asked.close + asked.grace,
            envelope=b"round %d" % t,
            drawn=drawn,
        )

    def now(self, t):
        """Return the instant at which a round, or a part of one, has passed."""
        return self.manifest.epoch + t * self.manifest.period

    def report(self, key, t, *, about="transition", threshold=0, salt=b"", secret=None, **changes):
        """Return the frame of a device: its bits are noise of their own, and always the same."""
        question = Question(about=about, threshold=threshold)
        code = question_code(question, self.manifest)
        epsilon = changes.pop("epsilon", self.manifest.epsilon)
        fields = {
            "question": code,
            "n_answers": n_answers(question, self.manifest),
            "t": t,
            "epsilon": epsilon,
            "manifest": self.campaign.id,
            "device": self.device(key),
        } | changes
        size = body_bytes(code, fields["n_answers"], epsilon, self.manifest.oracle)
        noise = hashlib.shake_128(b"%d %d " % (key, t) + salt).digest(size)
        bits = fields.pop("bits", None) or self._possible(noise, question, fields["n_answers"])
        report = Report(bits=bits, **fields)
        return encode_report(report, secret or self.secret(key), oracle=self.manifest.oracle)

    def heartbeat(self, key, t, kind=MOVING, **changes):
        secret = changes.pop("secret", self.secret(key))
        fields = {
            "kind": kind,
            "t": t,
            "manifest": self.campaign.id,
            "device": self.device(key),
        } | changes
        return encode_heartbeat(Heartbeat(**fields), secret)

    def _possible(self, noise, question, n):
        value = int.from_bytes(noise, "little")
        if question.binary:
            return bytes([value % 2])
        if self.manifest.oracle == "oue":
            return (value % (1 << n)).to_bytes(len(noise), "little")
        if self.manifest.oracle == "grr":
            return (value % (n + 1)).to_bytes(len(noise), "little")
        return noise[:4] + bytes([noise[4] % 2]) + bytes(len(noise) - 5)
