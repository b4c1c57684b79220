"""The files of a Delta log: their names, sizes and stamps. A table is given by its path or URI, on a disk or in a bucket."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

from console.agent.object_store.object_path import ObjectPath, in_bucket, place
from console.agent.object_store.s3 import Listed

Stamp = tuple[int, int, int]  # of a file: inode, time of its last change, size


def root_of(table: str) -> Path:
    """The folder of a table given by path or URI."""
    return Path(unquote(urlparse(table).path)) if table.startswith("file:") else place(table)


def commit_file(table: str, version: int) -> str:
    """The path or URI of a commit, whether or not it is there."""
    return f"{root_of(table)}/_delta_log/{version:020}.json"


def stamp(table: str, version: int) -> Stamp | None:
    """The stamp of a commit's file on a disk: a table that was dropped and recreated has other files. None without one."""
    if in_bucket(table):
        return None
    try:
        stat = os.stat(commit_file(table, version))
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def names(table: str) -> Iterator[str]:
    """Of all files in a log. raises  FileNotFoundError if it has none"""
    if in_bucket(table):
        yield from listed_from(table, "")
        return
    with os.scandir(root_of(table) / "_delta_log") as entries:
        for entry in entries:
            yield entry.name


_KNOWN: dict[str, str] = {}  # table in a bucket → the newest commit that was seen there


def newest_names(table: str) -> Iterable[str]:
    """As `names`; in a bucket from the newest known commit on: a list of the whole log costs a request for each thousand."""
    if not in_bucket(table):
        return names(table)
    found = listed_from(table, _KNOWN[table]) if table in _KNOWN else {}
    if not (newest := _newest(found)):  # another table is there now, whose log is shorter
        found = listed_from(table, "")
        newest = _newest(found)
    if newest:
        _KNOWN[table] = newest
    return found


def _newest(names: Iterable[str]) -> str:
    """The newest version as its files are named; "" if none of these is of a version, as `_last_checkpoint` is not."""
    return max((name[:20] for name in names if name[:20].isdigit()), default="")


def listed_from(table: str, after: str) -> dict[str, Listed]:
    """The objects of a log in a bucket by their names. after: a name; only those behind it"""
    folder = root_of(table) / "_delta_log"
    assert isinstance(folder, ObjectPath)
    return {entry.key.rpartition("/")[2]: entry for entry in folder.listed(after)}


def sizes(table: str) -> Iterator[tuple[str, int]]:
    """Names in a log and their bytes; nothing if there is no log."""
    if in_bucket(table):
        yield from ((name, entry.bytes) for name, entry in listed_from(table, "").items())
        return
    with suppress(FileNotFoundError), os.scandir(root_of(table) / "_delta_log") as entries:
        for entry in entries:
            yield entry.name, entry.stat().st_size
