"""MQTT subscriber of a gateway: receives what phones publish to the owner's broker."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from retrasyn.client.curator_client import check_encrypted
from retrasyn.client.gateway.messages import PhonePosition, name_of_topic, read_owntracks
from retrasyn.errors import InputError, MissingExtra, ServerError, SettingError

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger(__name__)
TOPIC = "owntracks/+/+"
PASSWORD = "RETRASYN_MQTT_PASSWORD"  # noqa: S105 - name of an environment variable
_MAX_PAYLOAD = 64 << 10
_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(slots=True)
class Subscriber:
    """Receives positions from a broker, and reconnects when the connection breaks."""

    url: str
    hear: Callable[[PhonePosition], bool] = field(repr=False)
    insecure: bool = field(default=False, kw_only=True)  # an open connection is allowed
    _client: Client | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        _parts(self.url)
        check_encrypted(self.url, insecure=self.insecure)

    def start(self) -> None:
        """Connect, and receive in a thread."""
        parts = _parts(self.url)
        client = _new_client()
        client.on_connect = _subscribe
        client.on_message = self._on_message
        if parts.username:
            client.username_pw_set(parts.username, os.environ.get(PASSWORD))
        if parts.scheme == "mqtts":
            client.tls_set()
        try:
            client.connect(parts.hostname or "", parts.port or _PORTS[parts.scheme])
        except OSError as fault:
            raise ServerError(
                f"broker {parts.hostname} cannot be reached ({fault}); check --mqtt"
            ) from None
        client.loop_start()
        self._client = client

    def stop(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        try:
            if len(message.payload) > _MAX_PAYLOAD:
                raise InputError("a message is too long")  # noqa: TRY301 - handled like other bad messages
            heard = read_owntracks(message.payload, name_of_topic(message.topic))
        except InputError as fault:
            log.warning("a message of the broker is not used: %s", fault)
            return
        if heard is not None and not self.hear(heard):
            log.warning("a phone that is none of this gateway's was heard from the broker")


def _subscribe(client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
    if reason.is_failure:
        log.error("the broker refuses us: %s", reason)
        return
    client.subscribe(TOPIC, qos=1)
    log.info("listening to %s", TOPIC)


def _parts(url: str) -> Any:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.password:
        raise SettingError(
            f"--mqtt must look like mqtt://[USER@]HOST[:PORT] or mqtts://...; a password goes into "
            f"the variable {PASSWORD}"
        )
    return parts


def _new_client() -> Client:
    try:
        from paho.mqtt import client, enums  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra('paho-mqtt is not installed: pip install "retrasyn[device]"') from None
    return client.Client(enums.CallbackAPIVersion.VERSION2, client_id="")
