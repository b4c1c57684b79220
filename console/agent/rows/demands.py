"""The features that a table requires of its readers, from its log alone, for tables that our readers cannot open."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from console.agent.store import log_files

_UNKNOWN_VERSION = 4  # reader versions from here on are not defined yet


def required_features(table: str) -> frozenset[str]:
    """Reader features of the newest protocol in the log; an unknown reader version counts as a feature. Empty if the
    log has no protocol.

    source  the Delta transaction log protocol, *Protocol Evolution*
    """
    return next(map(_features_of, _protocols(log_files.root_of(table) / "_delta_log")), frozenset())


def _protocols(folder: Path) -> Iterator[dict[str, Any]]:
    """Protocol actions, newest first; a version's commit and its checkpoint have the same one."""
    files = (path for path in folder.glob("*.*") if path.name.partition(".")[0].isdigit())
    for path in sorted(files, key=lambda path: path.name.partition(".")[0], reverse=True):
        actions = _lines(path) if path.suffix == ".json" else _rows(path) if path.suffix == ".parquet" else ()
        for action in actions:
            match action:
                case {"protocol": dict(protocol)}:
                    yield protocol


def _lines(path: Path) -> Iterator[Any]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if '"protocol"' in line:
            try:
                yield json.loads(line)
            except ValueError:  # readers of the table report a damaged commit
                continue


def _rows(path: Path) -> Iterable[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            rows = pq.read_table(file, columns=["protocol"])["protocol"].to_pylist()
        return [{"protocol": protocol} for protocol in rows]
    except (pa.ArrowException, OSError, KeyError):
        return []


def _features_of(protocol: dict[str, Any]) -> frozenset[str]:
    version, features = protocol.get("minReaderVersion"), protocol.get("readerFeatures")
    unknown = {f"reader version {version}"} if isinstance(version, int) and version >= _UNKNOWN_VERSION else set[str]()
    return frozenset(unknown | set(map(str, features)) if isinstance(features, list) else unknown)
