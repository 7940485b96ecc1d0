"""Where the replicas of a release lie: numbered files in a folder beside it."""

from __future__ import annotations

from pathlib import Path


def replica_folder(path: Path) -> Path:
    """Return the folder of a release's replicas: NAME.replicas beside NAME.parquet."""
    return path.with_suffix(".replicas")


def replica_paths(path: Path) -> list[Path]:
    """Return the files of a release's replicas in their order; none if it has no replicas."""
    return sorted(replica_folder(path).glob("[0-9]*.parquet"))
