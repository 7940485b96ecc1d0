"""Writes the bill of materials: what an installation runs besides our own code (CycloneDX).

    python deploy/sbom.py

Python's libraries are those of the pins, the live map's those of its lock file that are not for
building alone. The same pins and lock give the same bytes: there is no time in it, and its serial
number follows from what it lists.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
OUT = Path(__file__).with_name("sbom.cdx.json")
_PINS = ("run", "serve")
_ALGORITHMS = {"sha512": HashAlgorithm.SHA_512}


def pinned() -> Iterator[Component]:
    """Return each pinned library of Python; the hashes of its many files stand beside the pins."""
    for name in _PINS:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        for found in re.finditer(r"^([a-z0-9-]+)==([^\s;\\]+)", text, re.MULTILINE):
            yield _component(PackageURL("pypi", None, found[1], found[2]))


def bundled() -> Iterator[Component]:
    """Return each library that the live map contains, with the hash of its only file."""
    lock = json.loads((ROOT / "viewer" / "package-lock.json").read_text())
    for path, entry in lock["packages"].items():
        if path and not entry.get("dev"):
            space, _, name = path.rpartition("node_modules/")[2].rpartition("/")
            url = PackageURL("npm", space or None, name, entry["version"])
            yield _component(url, hashes=[_hash(entry["integrity"])])


def _hash(integrity: str) -> HashType:
    """Read a hash as npm writes it."""
    algorithm, _, digest = integrity.partition("-")
    return HashType(alg=_ALGORITHMS[algorithm], content=base64.b64decode(digest).hex())


def _component(url: PackageURL, *, hashes: Iterable[HashType] = ()) -> Component:
    return Component(
        type=ComponentType.LIBRARY,
        group=url.namespace,
        name=url.name,
        version=url.version,
        purl=url,
        bom_ref=url.to_string(),
        hashes=hashes,
    )


def write() -> str:
    """Return the bill as text."""
    version = (ROOT / "src/retrasyn/_version.py").read_text().split('"')[-2]
    ours = _component(PackageURL("pypi", None, "retrasyn", version))
    ours.type = ComponentType.APPLICATION
    bom = Bom(components={one.purl: one for one in (*pinned(), *bundled())}.values())
    bom.metadata.component = ours
    bom.register_dependency(ours, bom.components)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["metadata"]["timestamp"], document["serialNumber"]
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, content).urn
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    OUT.write_text(write())
