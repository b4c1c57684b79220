"""What a table demands of its readers, told from its log alone: for one that no reader of ours can open."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from console.agent.store import log

_BEYOND = 4  # a version of readers from which on nobody knows what one has to know


def demanded(table: str) -> frozenset[str]:
    """The features that a reader must know by the newest protocol in the log; a version beyond all known ones is named
    like a feature. Empty where the log tells of none."""
    return next(map(_named, _protocols(log.local(table) / "_delta_log")), frozenset())


def _protocols(folder: Path) -> Iterator[dict[str, Any]]:
    """The newest first. Of one version the commit and its checkpoint say the same."""
    held = (path for path in folder.glob("*.*") if path.name.partition(".")[0].isdigit())
    for path in sorted(held, key=lambda path: path.name.partition(".")[0], reverse=True):
        actions = _lines(path) if path.suffix == ".json" else _rows(path) if path.suffix == ".parquet" else ()
        for action in actions:
            match action:
                case {"protocol": dict(found)}:
                    yield found


def _lines(path: Path) -> Iterator[Any]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if '"protocol"' in line:
            try:
                yield json.loads(line)
            except ValueError:  # a damaged commit is for whoever reads the table
                continue


def _rows(path: Path) -> Iterable[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [{"protocol": found} for found in pq.read_table(path, columns=["protocol"])["protocol"].to_pylist()]
    except (pa.ArrowException, OSError, KeyError):
        return []


def _named(protocol: dict[str, Any]) -> frozenset[str]:
    version, features = protocol.get("minReaderVersion"), protocol.get("readerFeatures")
    beyond = {f"reader version {version}"} if isinstance(version, int) and version >= _BEYOND else set[str]()
    return frozenset(beyond | set(map(str, features)) if isinstance(features, list) else beyond)
