"""Fifty ways to ask a listener for a name that is not its own, as bytes on the wire."""

from __future__ import annotations

import contextlib
import socket

GET, FOREIGN, OWN = "GET {path} HTTP/1.1", "Host: evil.example", "Host: {own}"
FORMS = {
    "no host": (GET,),
    "no host in HTTP/1.0": ("GET {path} HTTP/1.0",),
    "two hosts, the second foreign": (GET, OWN, FOREIGN),
    "two hosts, the first foreign": (GET, FOREIGN, OWN),
    "the same host twice": (GET, OWN, OWN),
    "two hosts in one line": (GET, "Host: {own}, {own}"),
    "two hosts and a space": (GET, "Host: {own} evil.example"),
    "a folded line": (GET, FOREIGN, " {own}"),
    "a foreign target": ("GET http://evil.example{path} HTTP/1.1", OWN),
    "a foreign target and host": ("GET http://evil.example{path} HTTP/1.1", FOREIGN),
    "our target and a foreign host": ("GET http://{own}{path} HTTP/1.1", FOREIGN),
    "our target and no host": ("GET http://{own}{path} HTTP/1.1",),
    "our target with a user": ("GET http://user@{own}{path} HTTP/1.1", OWN),
    "a target without a scheme": ("GET //evil.example{path} HTTP/1.1", FOREIGN),
    "a tunnel": ("CONNECT evil.example:80 HTTP/1.1", FOREIGN),
    "the server as a whole": ("OPTIONS * HTTP/1.1", FOREIGN),
    "a space before the colon": (GET, "Host : {own}"),
    "a post": ("POST {path} HTTP/1.1", FOREIGN, "Content-Length: 0"),
    "a head": ("HEAD {path} HTTP/1.1", FOREIGN),
    "an options": ("OPTIONS {path} HTTP/1.1", FOREIGN),
    "forwarded for us": (GET, FOREIGN, "X-Forwarded-Host: {own}"),
    "forwarded as the RFC says": (GET, FOREIGN, "Forwarded: host={own}"),
    "an original host": (GET, FOREIGN, "X-Original-Host: {own}", "X-Host: {own}"),
    "an origin of ours": (GET, FOREIGN, "Origin: http://{own}"),
    "a WebSocket": (
        *(GET, FOREIGN, "Connection: Upgrade", "Upgrade: websocket"),
        *("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="),
    ),
    "HTTP/2 asked for": (GET, FOREIGN, "Connection: Upgrade", "Upgrade: h2c"),
}
"""Lines of requests; {own} is a name that is answered, {path} an address that exists."""
HOSTS = {
    "empty": b"",
    "a foreign name": b"evil.example",
    "a foreign name, our port": b"evil.example:{port}",
    "a foreign name, upper case": b"EVIL.EXAMPLE:{port}",
    "ours below theirs": b"127.0.0.1.evil.example:{port}",
    "theirs below ours": b"evil.localhost:{port}",
    "a name that leads to us": b"127.0.0.1.nip.io:{port}",
    "ours as a user": b"127.0.0.1:{port}@evil.example",
    "theirs as a user": b"evil.example@127.0.0.1:{port}",
    "a user of ours": b"user:password@localhost:{port}",
    "a trailing dot": b"localhost.:{port}",
    "a foreign name and dot": b"evil.example.:{port}",
    "a port beyond": b"127.0.0.1:65536",
    "port 0": b"127.0.0.1:0",
    "no number as port": b"localhost:http",
    "a port and more": b"localhost:{port}x",
    "a port too many": b"localhost:{port}:{port}",
    "a port with a zero": b"localhost:0{port}",
    "a port with a sign": b"localhost:+{port}",
    "a colon and no port": b"localhost:",
    "a path": b"localhost:{port}/evil.example",
    "a fragment": b"localhost:{port}#evil.example",
    "a scheme": b"http://localhost:{port}",
    "any address": b"0.0.0.0:{port}",
    "a number as address": b"2130706433:{port}",
    "an address in hexadecimal": b"0x7f.1:{port}",
    "a short address": b"127.1:{port}",
    "a foreign address": b"192.0.2.1:{port}",
    "a foreign IPv6 address": b"[2001:db8::1]:{port}",
    "an IPv6 address in full": b"[0:0:0:0:0:0:0:1]:{port}",
    "a mapped IPv6 address": b"[::ffff:127.0.0.1]:{port}",
    "an IPv6 address without brackets": b"::1:{port}",
    "half a bracket": b"[::1:{port}",
    "an IPv6 zone": b"[::1%25lo]:{port}",
    "an international name": "l\u00f6calhost:{port}".encode(),
    "an international name, encoded": b"xn--lcalhost-n4a:{port}",
    "a look-alike": "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54:{port}".encode(),
    "a percent sign": b"localhos%74:{port}",
    "a null byte": b"localhost\x00.evil.example:{port}",
    "a tab inside": b"local\thost:{port}",
    "a quote": b'"localhost:{port}"',
    "a list": b"localhost:{port};evil.example",
    "a star": b"*",
    "very long": b"a" * 4000 + b":{port}",
}
"""Single headers Host."""
_END = b"\r\nConnection: close\r\n\r\n"
ALL = {name: "\r\n".join(lines).encode() + _END for name, lines in FORMS.items()} | {
    name: GET.encode() + b"\r\nHost: " + host + _END for name, host in HOSTS.items()
}


def wire(form: bytes, own: str, path: str) -> bytes:
    """Return the bytes of a form for a listener."""
    filled = {b"{own}": own, b"{path}": path, b"{port}": own.rpartition(":")[2]}
    for name, value in filled.items():
        form = form.replace(name, value.encode())
    return form


def answer_to(address: tuple[str, int], request: bytes, seconds: float = 10) -> bytes:
    """Send a request that is the last one, and return all that comes back."""
    parts = []
    with socket.create_connection(address, timeout=seconds) as connection:
        connection.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                parts.append(part)
    return b"".join(parts)


def is_refused(answer: bytes) -> bool:
    """Return whether an answer says no, and nothing of ours: no document, no figure, no name."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head[9:12]
    if status == b"421":
        return body in (b"", b"Misdirected Request\n")  # nothing after HEAD
    return status == b"400" and len(body) < 1000 and b"retrasyn" not in body.lower()
