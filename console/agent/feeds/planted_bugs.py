"""Bugs planted on purpose, to prove that checks catch them. Inactive unless CONSOLE_PLANT names one."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from console.model.event import Checked
from console.model.slices import Slice


def planted() -> str:
    return os.environ.get("CONSOLE_PLANT", "")


def skip_day(run: Sequence[Slice]) -> Sequence[Slice]:
    """Lose the first slice of a longer run: the position moves past it, its rows are never read."""
    if planted() == "skip-day" and len(run) > 2:
        return run[1:]
    return run


def double_batch(session: Any, history: Any, run: Sequence[Slice]) -> None:
    """Write a batch a second time, without its position."""
    if planted() == "double-batch" and run[0].index == 1:
        from console.agent.feeds.backfill import target_rows

        target_rows(session, history, run).write.format("delta").mode("append").save(history.target_path)


def early() -> bool:
    """Whether to promote before the new version has caught up."""
    return planted() == "early-promote"


def blind(check: Checked) -> Checked:
    """Let every check pass while a bug is planted, so that it must be caught from outside."""
    return replace(check, ok=True) if planted() else check
