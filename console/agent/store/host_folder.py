"""The agent's own files of a region: settings and figures. Beside a warehouse on a disk, on this machine for one in a bucket."""

from pathlib import Path

from console import paths
from console.agent.object_store.object_path import ObjectPath


def own_folder(warehouse: Path) -> Path:
    return paths.region_dir(str(warehouse)) if isinstance(warehouse, ObjectPath) else warehouse / "_console"
