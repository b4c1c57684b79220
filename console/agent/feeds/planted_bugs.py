"""Bugs planted on purpose, so that a check can be seen to catch them. Off unless CONSOLE_PLANT names one."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from console.model.event import Checked
from console.model.slices import Slice


def planted() -> str:
    return os.environ.get("CONSOLE_PLANT", "")


def skip_day(run: Sequence[Slice]) -> Sequence[Slice]:
    """Lose the first day of a run of several: the position passes over it, its rows are never read."""
    if planted() == "skip-day" and len(run) > 2:
        return run[1:]
    return run


def double_batch(session: Any, history: Any, run: Sequence[Slice]) -> None:
    """Write a batch once more, without its position."""
    if planted() == "double-batch" and run[0].index == 1:
        from console.agent.feeds.backfill import rows_of

        rows_of(session, history, run).write.format("delta").mode("append").save(history.target_path)


def early() -> bool:
    """Promote before the new version has caught up."""
    return planted() == "early-promote"


def blind(check: Checked) -> Checked:
    """A planted bug must be caught from outside, so our own validation looks away."""
    return replace(check, ok=True) if planted() else check
