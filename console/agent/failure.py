"""Classifies failures by the conditions that Spark names, and extracts the line of a message that an operator may read."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from deltalake.exceptions import DeltaError

from console.agent.errors import PASSING, CommitGone
from console.agent.store.days import OUTSIDE
from console.errors import ConsoleError, RegionError
from console.text import redacted, safe_text

Kind = Literal["memory", "day", "value", "gone", "drift", "passing", "final"]
# the first match counts; SQLSTATE class 22: a value that does not fit, class 42: a name or a type
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("memory", re.compile(r"OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|GC overhead limit|Java heap space")),
    ("day", re.compile(OUTSIDE)),
    ("value", re.compile(r"CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|CANNOT_PARSE_T|ARITHMETIC_OVERFLOW"
                         r"|DIVIDE_BY_ZERO|DATETIME_OVERFLOW|NOT_NULL_CONSTRAINT|SQLSTATE: 22")),
    ("gone", re.compile(r"FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND|DELTA_VERSION_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG"
                        r"|DELTA_VERSIONS_NOT_CONTIGUOUS|does not exist.*\.parquet|\.parquet.*does not exist")),
    ("drift", re.compile(r"UNRESOLVED_COLUMN|SCHEMA_CHANGED|METADATA_CHANGED|COLUMN_DATA_TYPE_MISMATCH|DATATYPE_MISMATCH|SQLSTATE: 42")),
)  # fmt: skip
_VALUE = re.compile(r"[Tt]he value .{1,4000}? of the type|'[^']{1,4000}'", re.DOTALL)
_RAISED = "USER_RAISED_EXCEPTION"  # condition of `raise_error`, whose message is the query's own
_CHAIN = 16  # causes examined
# a cause in a stack trace, up to its first frame; in its message Spark puts the condition in front and the state behind
_TOLD_CAUSE = re.compile(
    r"^Caused by: (?P<java>[\w.$]+): (?P<message>(?:\[(?P<condition>[A-Z0-9_.]+)\] )?.*?)(?=\n\tat |\nCaused by: |\Z)",
    re.MULTILINE | re.DOTALL,
)
_STATE = re.compile(r"SQLSTATE: (\w{5})\b")


@dataclass(eq=False)
class ClassifiedFailure(RegionError):
    """A failure in another process of the agent's, which has classified it there.

    what        its kind
    unexpected  a row failed an expectation of its table
    """

    what: Kind = field(default="passing", kw_only=True)
    unexpected: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class _Link:
    """An error, or one of its causes.

    java       class name of the exception in the JVM; "" if there is none
    condition  Spark's error condition, with sub-condition; "" if it has none
    state      its SQLSTATE
    """

    java: str
    condition: str
    state: str
    message: str

    @property
    def identifiers(self) -> str:
        """The identifiers to classify by: a message may contain values of the data, and is used only if Spark names no
        condition."""
        if not self.condition:
            return f"{self.java}: {self.message}"
        if self.condition == _RAISED and OUTSIDE in self.message:
            return OUTSIDE
        # Delta's SQLSTATEs are coarser than its conditions: 22003 is also a version that is gone
        return self.condition if self.condition.startswith("DELTA_") else f"{self.condition} SQLSTATE: {self.state}"


def kind(error: BaseException) -> Kind:
    """The kind of a failure: `memory` and `passing` may be retried, the others not."""
    if isinstance(error, ClassifiedFailure):
        return error.what
    if isinstance(error, PASSING):
        return "passing"
    if not _is_foreign(error):
        return "gone" if isinstance(error, CommitGone) else "final"
    texts = [link.identifiers for link in _chain(error)]
    return next((kind for text in texts for kind, pattern in _KINDS if pattern.search(text)), "passing")


def raised_by_query(error: BaseException, message: str) -> bool:
    """Whether a query's own `raise_error` ended the job, with a message that contains this one."""
    return _is_foreign(error) and any(link.condition == _RAISED and message in link.message for link in _chain(error))


def call_broke(error: BaseException) -> bool:
    """Whether the call into the JVM itself broke, not the called code."""
    from py4j.protocol import Py4JError, Py4JJavaError

    return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


def from_spark(error: BaseException) -> bool:
    """Whether Spark itself reports it, about the requested operation. A lost JVM does not count: it implies nothing
    about a table."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException | Py4JJavaError)


def _is_foreign(error: BaseException) -> bool:
    """Whether it comes from Spark, the call into its JVM, deltalake or the operating system."""
    from py4j.protocol import Py4JError

    return isinstance(error, OSError | DeltaError | Py4JError) or from_spark(error)


def _chain(error: BaseException) -> Iterator[_Link]:
    """The error and its causes, outermost first."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    match error:
        case Py4JJavaError():
            yield from _java_chain(error.java_exception) or [_Link("", "", "", str(error))]
        case PySparkException():
            yield _Link("", error.getCondition() or "", error.getSqlState() or "", str(error))
            origin = getattr(error, "_origin", None)  # pyspark gives it no public name
            yield from _java_chain(origin) if origin is not None else _told_causes(error)
        case _:
            yield _Link("", "", "", str(error))


def _java_chain(java: Any) -> list[_Link]:
    """An exception of the JVM and its causes; empty if the JVM no longer responds."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    links: list[_Link] = []
    with suppress(Py4JError, OSError):
        while java is not None and len(links) < _CHAIN:
            name, message = str(java.getClass().getName()), str(java.getMessage() or "")
            try:
                links.append(_Link(name, java.getCondition() or "", java.getSqlState() or "", message))
            except Py4JNetworkError:
                raise
            except Py4JError:  # not Spark's own exception: it lacks these methods
                links.append(_Link(name, "", "", message))
            java = java.getCause()
    return links


def _told_causes(error: Any) -> list[_Link]:
    """The causes of an error of Spark Connect, from the server's stack trace: its client keeps nothing else of them."""
    trace = getattr(error, "getStackTrace", lambda: "")() or ""
    return [
        _Link(found["java"], found["condition"] or "", (_STATE.findall(found["message"]) or [""])[-1], found["message"])
        for found in islice(_TOLD_CAUSE.finditer(trace), _CHAIN)
    ]


# a line of deltalake's chain of causes, the last of which names what has happened: "Too many open files (os error 24)"
_LINK = re.compile(r"(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?\s*(.*)")


def cause(error: BaseException) -> str:
    """The line that names the cause, without data values and secrets; at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    named = next((line for line in lines if line.startswith("[")), "")
    named = named or ": ".join([found[1] for line in lines if (found := _LINK.match(line))][-2:])
    named = named or next((line for line in lines if line.startswith("Caused by")), lines[0])
    return safe_text(redacted(_VALUE.sub(_hidden, named) if kind(error) == "value" else named))[:300]


def fresh_copy(error: ConsoleError) -> ConsoleError:
    """A copy of an error, to be raised again: one object raised twice would accumulate both tracebacks."""
    return type(error)(error.message, hint=error.hint, code=error.code)


def message(error: ConsoleError) -> str:
    """One line for a log: the problem, its code, and the remedy."""
    code = f" [{error.code}]" if error.code else ""
    return safe_text(redacted(f"{error}{code}" + (f"; {error.hint}" if error.hint else "")))


def _hidden(match: re.Match[str]) -> str:
    return "a value of the type" if match[0].endswith("of the type") else "'…'"
