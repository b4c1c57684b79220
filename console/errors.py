"""Every error the operator can act on, in one tree; any other exception is a bug and shows its traceback.

ConsoleError         exit 1   the base: `str(error)` says what and where, `hint` says what to do
  UsageError         exit 64  a flag, name or value on the command line
  DataError          exit 65  files of the project, SQL, saved plans: wrong as written
    Problems         exit 65  several of them, all at once
    NewerFormat      exit 65  stored or sent by a newer version, in a form that this one would misread
  RegionError        exit 1   a region, job or check failed
    CheckFailed      exit 1   validation found a difference
    FeedStopped      exit 1   a feed reached a commit that must not flow (docs/design.md, the rules of a feed)
    Protocol         exit 65  the agent's answer is invalid
  AtGate             exit 3   stopped at the promote gate, waiting for a person
  Conflict           exit 4   someone else was first, a lock is held, or the plan is stale
  Unreachable        exit 5   no answer from a region; safe to retry
"""

import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import ClassVar

from console import remedy
from console.remedy import Remedy

DISTRIBUTION = "pipeline-console"  # as `pip install` knows it


@dataclass(eq=False)
class ConsoleError(Exception):
    """Base of the tree.

    message  one line: the problem and its place
    hint     one line: the command to type or the change to make; may be empty
    code     stable short name (`E_LOCK`, `C101` …) for JSON and for searching the docs; may be empty
    region   the region with which the message begins; "" if there is none
    """

    message: str
    hint: str = field(default="", kw_only=True)
    code: str = field(default="", kw_only=True)
    region: str = field(default="", kw_only=True)

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        return self.message


class UsageError(ConsoleError):
    """A flag, a name or a value on the command line."""

    exit_code = 64


class DataError(ConsoleError):
    """Files of the project, SQL, saved plans: wrong as written; nothing was touched."""

    exit_code = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in the operator's files, or one finding of a planner rule.

    code      stable: `P…` project files, `S…` SQL, `C…` planner rules
    severity  `refuse` stops; `warn` and `note` are shown
    where     `file:line:column`, or "" if no file is the cause
    node      the logical name concerned, or ""
    remedies  each sufficient by itself; `hint` is their text
    """

    code: str
    message: str
    where: str = ""
    hint: str = ""
    severity: str = "refuse"
    node: str = ""
    # like `model.codec.BESIDE`, a floor above: left out of data for 0.1.0, which refuses unknown keys
    remedies: tuple[Remedy, ...] = field(default=(), metadata={"quiet": True, "beside": True})

    def __post_init__(self) -> None:
        if self.remedies and not self.hint:
            object.__setattr__(self, "hint", remedy.hint(self.remedies))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.message} [{self.code}]"


@dataclass(eq=False)
class Problems(DataError):
    """All mistakes, at once. `str()` is the first and the count."""

    problems: tuple[Problem, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, problems: "list[Problem] | tuple[Problem, ...]") -> "Problems":
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return cls(f"{problems[0]}{more}", hint=problems[0].hint, code=problems[0].code, problems=tuple(problems))


class NewerFormat(DataError):
    """Data that only a newer version of console understands; nothing was touched."""


@dataclass(eq=False)
class FrameTooLong(DataError):
    """A request or an answer does not fit one line of the socket."""

    code: str = field(default="E_FRAME", kw_only=True)


@dataclass(eq=False)
class NoWarehouse(DataError):
    """The inventory names a path that does not exist: misspelt, not created yet, or on a disk that is not mounted.

    Not `Unreachable`: retrying alone never helps.
    """

    code: str = field(default="E_NO_WAREHOUSE", kw_only=True)


def no_warehouse(region: str, path: object, file: str = "the region's file") -> NoWarehouse:
    lead = f"{region}: " if region else ""
    hint = f"correct `warehouse:` in {file}; for a new region: mkdir -p {path}; or mount its disk"
    return NoWarehouse(f"{lead}there is no warehouse at {path}", hint=hint, region=region)


class RegionError(ConsoleError):
    """A region, job or check failed; the live release was not touched."""


def installing(extra: str) -> str:
    """The command that installs an extra into this installation."""
    return f"{sys.executable} -m pip install '{DISTRIBUTION}[{extra}]'"


def require_spark() -> None:
    """raises  RegionError if only the planning half of console is installed"""
    if find_spec("pyspark") is None:
        message = f"pyspark is not installed for {sys.executable}: no agent can be started on this machine"
        raise RegionError(message, hint=f"{installing('agent')}, then console setup", code="E_NO_SPARK")


class CheckFailed(RegionError):
    """Validation found a difference between the old and the new version."""


class FeedStopped(RegionError):
    """A feed reached a commit that must not flow, and stopped in front of it."""


class Protocol(RegionError):
    """The agent's answer is invalid."""

    exit_code = 65


class AtGate(ConsoleError):
    """Stopped at the promote gate, waiting for a person."""

    exit_code = 3


class Conflict(ConsoleError):
    """Someone else was first, a lock is held, or the plan is stale."""

    exit_code = 4


@dataclass(eq=False)
class LoadMoved(Conflict):
    """A load has progressed since its sender read it: read it again, send again."""

    code: str = field(default="E_LOAD_MOVED", kw_only=True)


@dataclass(eq=False)
class SchemaMoved(Conflict):
    """The landing table's columns have changed since the lines were checked: read them again, send again."""

    code: str = field(default="E_SCHEMA_MOVED", kw_only=True)


class Unreachable(ConsoleError):
    """No answer from a region; safe to retry."""

    exit_code = 5


@dataclass(eq=False)
class NoAgent(Unreachable):
    """No agent runs in the region; most commands start one, watching does not."""

    code: str = field(default="E_NO_AGENT", kw_only=True)


def is_unreachable(error: ConsoleError) -> bool:
    """Whether the region may become reachable by itself: it does not answer, or its warehouse's disk is not mounted."""
    return isinstance(error, Unreachable | NoWarehouse)


BY_NAME: dict[str, type[ConsoleError]] = {
    cls.__name__: cls
    for cls in (
        UsageError,
        DataError,
        NewerFormat,
        RegionError,
        CheckFailed,
        FeedStopped,
        Protocol,
        AtGate,
        Conflict,
        Unreachable,
    )
}
_TREE = frozenset((ConsoleError, Problems, *BY_NAME.values()))
_BY_CODE: dict[str, type[ConsoleError]] = {
    cls.code: cls for cls in (FrameTooLong, NoWarehouse, LoadMoved, SchemaMoved, NoAgent)
}


def type_name(error: ConsoleError) -> str:
    """Name of an error's type in messages and JSON. A class for a single code is sent under its parent's name, which every version knows."""
    return next(cls.__name__ for cls in type(error).__mro__ if cls in _TREE)


def received(name: str, message: str, *, hint: str, code: str, region: str = "") -> ConsoleError:
    """The error that another process sent by type and code; from here on code decides by the class.

    name    a key of `BY_NAME`
    region  the answering region; the process does not send whether its message already names it
    """
    region = region if region and message.startswith(f"{region}: ") else ""
    known, narrow = BY_NAME[name], _BY_CODE.get(code, ConsoleError)
    return (narrow if issubclass(narrow, known) else known)(message, hint=hint, code=code, region=region)
