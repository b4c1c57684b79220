"""Saved plans: reviewed plans, bound by digests, readable only by their owner."""

import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from console import crash
from console.errors import Conflict, DataError
from console.model.codec import TAG, decode, dumps, encode, loads
from console.model.pipeline import digest
from console.model.plan import Plan

FORMAT = 2
_MAX_BYTES = 64 * 1024 * 1024
_AGAIN = "make a new one: console plan --out FILE"


@dataclass(frozen=True, slots=True)
class Rests:
    """The baseline of a plan, as in `console.planning.review.baseline.Baseline`."""

    release: str
    tables: dict[str, tuple[str, str]]
    shapes: dict[str, dict[str, str]]

    @property
    def seal(self) -> str:
        """The required `content` of the plan; "" if a shape does not match its digest."""
        known = all(digest(facts) == name for name, facts in self.shapes.items())
        tables = {name: list(item) for name, item in self.tables.items()}
        return digest({"release": self.release, "tables": tables}) if known else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlans:
    """A file of plans, as it was reviewed.

    grounds  region → the facts that its plan rests on, None if the file lacks them: with them a changed fact can be named
    tool     version of console that made it;  regions  the resolved list, in the order of waves
    """

    tool: str
    pipeline: str
    regions: tuple[str, ...]
    plans: tuple[Plan, ...]
    grounds: dict[str, Rests | None]


def save_plans(path: Path, plans: Sequence[Plan], grounds: Sequence[object] = ()) -> None:
    """Write plans to a file of mode 0600, whole or not at all; an older file of that name is replaced.

    grounds  `console.planning.Baseline` of each plan, in the same order; () leaves out these facts, of which only the digest is then known
    raises   DataError if it cannot be written there
    """
    entries = []
    for given, rests in zip_longest(plans, grounds, fillvalue=None):
        plan = decode(Plan, encode(given))  # as decoded later: floats, not ints
        entries.append({"digest": plan.digest(), "plan": encode(plan), "ground": _bare(rests)})
    body = {
        "format_version": FORMAT,
        "tool": plans[0].tool if plans else "",
        "pipeline": plans[0].pipeline if plans else "",
        "regions": [plan.region for plan in plans],
        "plans": entries,
    }
    text = dumps({**body, "digest": digest(body)}) + "\n"
    written = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # exclusive, and 0600
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        crash.point("console-before-plan-file")
        os.replace(written, path)
        crash.point("console-plan-file")
    except OSError as error:
        if written:
            Path(written).unlink(missing_ok=True)
        raise DataError(f"{path}: the plan cannot be saved: {error.strerror}") from None


def load_plans(path: Path) -> tuple[Plan, ...]:
    """The plans of a file that `save_plans` wrote. raises DataError"""
    return load_saved(path).plans


def made_by_another(made_by: str, tool: str) -> str:
    """The reason why a plan made by another version of console is stale."""
    return f"it was made by {made_by}, and this is {tool}"


def load_saved(path: Path, tool: str = "") -> SavedPlans:
    """The whole content of the file.

    tool    this version of console, by which a plan that it cannot read is recognised
    raises  DataError if it is not such a file, is cut off, was changed, or comes from another format;
            Conflict if another version wrote it and it cannot be read here
    """
    try:
        data = loads(_read(path))
    except DataError as error:
        raise DataError(f"{path}: {error}", hint=_AGAIN) from None
    if not isinstance(data, dict) or not isinstance(data.get("plans"), list):
        raise DataError(f"{path}: not a saved plan", hint=_AGAIN)
    if data.get("format_version") != FORMAT:
        message = f"{path}: format {str(data.get('format_version'))[:20]}, this console reads format {FORMAT}"
        raise DataError(message, hint=_AGAIN)
    claimed = data.pop("digest", None)
    if set(data) != {"format_version", "tool", "pipeline", "regions", "plans"} or claimed != _digest(data, path):
        raise DataError(f"{path}: the saved plan was changed after it was written", hint=_AGAIN)
    made_by = str(data["tool"])
    try:
        parsed = [_plan(entry, f"{path}: plan {i}") for i, entry in enumerate(data["plans"], 1)]
    except DataError:
        if tool in ("", made_by):
            raise
        stale = f"{path}: the saved plan is stale: {made_by_another(made_by, tool)}"
        raise Conflict(stale, hint=_AGAIN, code="E_STALE") from None
    plans = tuple(plan for plan, _ in parsed)
    if data["regions"] != [plan.region for plan in plans] or any(plan.pipeline != data["pipeline"] for plan in plans):
        raise DataError(f"{path}: its plans are not of the regions and the pipeline that it names", hint=_AGAIN)
    grounds = {plan.region: rests for plan, rests in parsed}
    return SavedPlans(
        tool=made_by,
        pipeline=str(data["pipeline"]),
        regions=tuple(data["regions"]),
        plans=plans,
        grounds=grounds,
    )


def _plan(entry: Any, where: str) -> tuple[Plan, Rests | None]:
    if not isinstance(entry, dict) or set(entry) != {"digest", "plan", "ground"}:
        raise DataError(f"{where} is not a saved plan", hint=_AGAIN)
    try:
        plan = decode(Plan, entry["plan"], exact=True)
        rests = decode(Rests, entry["ground"], exact=True) if entry["ground"] is not None else None
    except DataError as error:
        raise DataError(f"{where}: {error}", hint=_AGAIN) from None
    if entry["digest"] != plan.digest() or (rests and rests.seal != plan.content):
        raise DataError(f"{where} does not match its digest", hint=_AGAIN)
    return plan, rests


def _bare(baseline: object) -> Any:
    """A baseline as data, without the name of its class."""
    data = encode(baseline)
    return {key: value for key, value in data.items() if key != TAG} if data else None


def _digest(data: Any, path: Path) -> str:
    try:
        return digest(data)
    except (ValueError, RecursionError):
        raise DataError(f"{path}: not a saved plan", hint=_AGAIN) from None


def _read(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise DataError("not a regular file")
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise DataError("too large for a saved plan")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("not UTF-8") from None
