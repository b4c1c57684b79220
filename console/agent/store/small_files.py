"""Small files of the agent beside its tables: each is replaced as a whole."""

import os
from pathlib import Path

from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits


def replace(path: Path, text: str) -> None:
    """Write a file; it is on disk, or in its bucket, when this returns.

    raises  LeaseLost if another agent may hold the region: a bucket would take the file all the same
    """
    if isinstance(path, ObjectPath):
        commits.check_tenure()
        path.write_text(text)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.stem}.new")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk: after a power loss no row or commit may name a missing file."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
