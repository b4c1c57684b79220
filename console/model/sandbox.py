"""Sandboxes: releases of pending changes beside the live one, in which rebuilt tables hold only their newest days."""

import re
from dataclasses import field
from typing import Literal

from console.errors import DataError
from console.model.codec import QUIET
from console.record import dataclass

SandboxState = Literal["building", "ready", "failed", "adopted"]
EXPIRES_HOURS, MOST_HOURS = 48.0, 720.0  # until a sandbox is dropped: the default, and the longest time
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_RELEASES = re.compile(r"r\d+|live|previous|retired")  # release ids and states, which `--release` accepts as well


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOrder:
    """The request for a sandbox, as stored in the region.

    days         newest days to copy of each rebuilt table
    at, expires  seconds since 1970, UTC
    dropping     its files are being deleted
    follows      rows that arrive after its fence flow into its tables
    """

    name: str
    days: int
    at: float
    expires: float
    by: str
    host: str
    dropping: bool = False
    follows: bool = field(default=False, metadata=QUIET)


@dataclass(frozen=True, slots=True)
class SandboxFeeding:
    """The lag of the feeds into a sandbox's tables. stopped: why a feed has stopped, "" if none has"""

    rows: int
    seconds: float
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The current state of one sandbox of a pipeline.

    live     release that was live at its creation, "" for none;  digest  of the pipeline that it was made from
    state    adopted: a rollout continues with its versions
    slices, of   slices of history that it holds, and of all
    rows, bytes  written for it
    tables   those with versions of its own
    why, hint    of a failure
    follows  rows that arrive after its fence flow into its tables;  feeding  their state, None while nothing feeds them
    """

    name: str
    state: SandboxState
    live: str
    digest: str
    days: int
    at: float
    expires: float
    by: str
    slices: int = 0
    of: int = 0
    rows: int = 0
    bytes: int = 0
    tables: tuple[str, ...] = ()
    why: str = ""
    hint: str = ""
    follows: bool = field(default=False, metadata=QUIET)
    feeding: SandboxFeeding | None = field(default=None, metadata=QUIET)

    @property
    def live_rows(self) -> str:
        """`no`, `yes`, `12 behind`, `stopped`. For display."""
        if not self.follows or self.feeding is None:
            return "waiting" if self.follows else "no"
        if self.feeding.stopped:
            return "stopped"
        return f"{self.feeding.rows:,} behind" if self.feeding.rows else "yes"

    @property
    def beside(self) -> str:
        """For display."""
        return self.live or "no release"

    def text(self, live: str, now: float) -> str:
        """`preview fix: ready, 1 day, beside r3; dropped in 47 h`. For display; live: the release that is live now"""
        days = "1 day" if self.days == 1 else f"{self.days} days"
        superseded = f", and {live} is live now" if live and live != self.live else ""
        beside = f"beside {self.beside}{superseded}"
        why = f" ({self.why})" if self.why else ""
        stopped = self.feeding.stopped if self.feeding else ""
        live_rows = f" and live rows{f', stopped ({stopped})' if stopped else ''}" if self.follows else ""
        left = time_left(self.expires - now)
        return f"preview {self.name}: {self.state}{why}, {days}{live_rows}, {beside}; dropped in {left}"


def time_left(seconds: float) -> str:
    hours = max(0.0, seconds) / 3600
    return f"{hours:.0f} h" if hours >= 1 else f"{hours * 60:.0f} min"


def check_name(name: str) -> str:
    """raises  DataError E_PREVIEW_NAME"""
    if not _NAME.fullmatch(name) or _RELEASES.fullmatch(name):
        raise DataError(
            f"{name!r:.60} cannot be the name of a preview",
            hint="letters, digits, '-' and '_', at most 40, and not the name of a release",
            code="E_PREVIEW_NAME",
        )
    return name
