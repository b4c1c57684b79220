"""The number of a live feed from its target's newest commits, one of which the feed usually made: opening a log of many files
takes a hundred times as long."""

import json
from collections.abc import Iterator
from typing import Any

from console.agent.errors import CommitGone
from console.agent.feeds import app_ids
from console.agent.object_store.object_path import in_bucket
from console.agent.store import log
from console.model.live import Feed

COMMITS = 16  # the newest ones that are read


def recent_number(target: str, feed: Feed) -> int | None:
    """The number last committed by a live feed; None if the newest commits do not tell, though the whole log may.

    They do not tell what preceded a change of the table's metadata: a replaced table has another id, hence other feeds.
    A moved feed's id names its source too, which would have to be opened. In a bucket each commit is a request.
    """
    if feed.moved or in_bucket(target):
        return None
    newest = log.latest_version(target)
    try:
        for version in range(newest, max(-1, newest - COMMITS), -1):
            actions = list(_actions(target, version))
            if any("metaData" in action for action in actions):
                return None
            numbers = [action["txn"] for action in actions if "txn" in action]
            own = [number for number in numbers if app_ids.is_live_id(number["appId"], feed)]
            if own:
                return int(own[0]["version"]) if len(own) == 1 else None
    except (CommitGone, ValueError):  # cleaned up, or cut short
        return None
    return None


def _actions(target: str, version: int) -> Iterator[dict[str, Any]]:
    """A commit's transactions and changes of metadata; the lines of files, of which there may be thousands, are not parsed."""
    for line in log.action_lines(target, version):
        if '"txn"' in line or '"metaData"' in line:
            yield json.loads(line)
