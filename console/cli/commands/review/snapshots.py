"""A snapshot of the regions' live state in one file, without credentials, for planning where no region can be reached."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from console.errors import Conflict, DataError
from console.model.codec import decode, encode, loads
from console.model.live import Live, TableStats
from console.model.pipeline import Pipeline, digest

FORMAT = 1
MOST_BYTES = 256 * 1024 * 1024
_AGAIN = "console snapshot --out FILE makes a new one"
_USER = re.compile(r"(?<=://)[^/@]*@")  # s3://key:secret@bucket


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Regions by name, with the landing tables that were looked for in each."""

    path: Path
    pipeline: str
    regions: dict[str, Live]
    landing: dict[str, tuple[str, ...]]

    def of(self, region: str, pipeline: Pipeline) -> Live:
        """One region's live state.

        raises  Conflict if the snapshot is too old to answer
        """
        if pipeline.name != self.pipeline:
            raise self._stale(f"is of pipeline {self.pipeline}, not {pipeline.name}")
        if region not in self.regions:
            raise self._stale(f"knows no region {region}")
        asked = {table.name for table in pipeline.tables if table.kind == "landing"}
        if unknown := sorted(asked - set(self.landing[region])):
            raise self._stale(f"was made before {', '.join(unknown)} landed in {region}")
        return self.regions[region]

    def _stale(self, why: str) -> Conflict:
        return Conflict(f"{self.path}: the snapshot {why}", hint=_AGAIN, code="E_STALE")


def picture(
    pipeline: str, tool: str, lives: Mapping[str, Live], landing: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """The file's content: manifests and table statistics; names of people and hosts, and users in addresses, left out."""
    regions = {
        name: {"landing": sorted(landing[name]), "live": encode(_bare(live))} for name, live in sorted(lives.items())
    }
    body = {"format_version": FORMAT, "tool": tool, "pipeline": pipeline, "regions": regions}
    return {**body, "digest": digest(body)}


def _bare(live: Live) -> Live:
    rows = tuple(replace(row, by="", host="") for row in live.releases)
    release = live.release
    if release is not None:
        tables = tuple(replace(s, version=replace(s.version, path=_plain(s.version.path))) for s in release.tables)
        release = replace(release, tables=tables)
    return replace(live, release=release, releases=rows, stats=tuple(_public(stats) for stats in live.stats))


def _public(stats: TableStats) -> TableStats:
    return replace(stats, path=_plain(stats.path))


def _plain(path: str) -> str:
    return _USER.sub("", path)


def load_snapshot(path: Path) -> Snapshot:
    """raises  DataError if it is not a snapshot, was changed, or has another format"""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError("too large for a snapshot")
        data = loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, DataError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{path}: cannot be read: {reason}", hint=_AGAIN) from None
    if not isinstance(data, dict) or data.get("format_version") != FORMAT:
        raise DataError(f"{path}: no snapshot of format {FORMAT}", hint=_AGAIN)
    claimed = data.pop("digest", None)
    if claimed != digest(data):
        raise DataError(f"{path}: the snapshot was changed after it was made", hint=_AGAIN)
    try:
        regions = {name: decode(Live, entry["live"], exact=True) for name, entry in data["regions"].items()}
        landing = {name: tuple(map(str, entry["landing"])) for name, entry in data["regions"].items()}
        return Snapshot(path, str(data["pipeline"]), regions, landing)
    except (DataError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: no snapshot: {error}", hint=_AGAIN) from None
