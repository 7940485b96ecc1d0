"""Importing the package against importing numpy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from workloads import Line, best


def lines() -> Iterator[Line]:
    def importing(name: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    seconds = best(
        {name: lambda name=name: importing(name) for name in ("sys", "numpy", "retrasyn")}
    )
    numpy, ours = (seconds[name] - seconds["sys"] for name in ("numpy", "retrasyn"))
    detail = f"{max(ours, 0) * 1e3:.1f} ms against {numpy * 1e3:.1f} ms"
    yield Line("import retrasyn / import numpy", max(ours, 0.0) / numpy, 2, detail)
