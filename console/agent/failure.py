"""Classifies failures by Spark's messages, and picks the line of them that an operator may read."""

import re
from typing import Literal

from console.agent.errors import CommitGone
from console.agent.store.days import OUTSIDE
from console.errors import ConsoleError
from console.text import redacted, safe_text

Kind = Literal["memory", "day", "value", "gone", "drift", "passing", "final"]
# Spark's messages, the first match counts; SQLSTATE class 22 is a value that does not fit, class 42 a name or a type
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("memory", re.compile(r"OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|GC overhead limit|Java heap space")),
    ("day", re.compile(OUTSIDE)),
    ("value", re.compile(r"CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|CANNOT_PARSE_T|ARITHMETIC_OVERFLOW"
                         r"|DIVIDE_BY_ZERO|DATETIME_OVERFLOW|NOT_NULL_CONSTRAINT|SQLSTATE: 22")),
    ("gone", re.compile(r"FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND|DELTA_VERSION_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG"
                        r"|DELTA_VERSIONS_NOT_CONTIGUOUS|does not exist.*\.parquet|\.parquet.*does not exist")),
    ("drift", re.compile(r"UNRESOLVED_COLUMN|SCHEMA_CHANGED|METADATA_CHANGED|COLUMN_DATA_TYPE_MISMATCH|DATATYPE_MISMATCH|SQLSTATE: 42")),
)  # fmt: skip
_FOREIGN = ("pyspark", "py4j", "deltalake", "_internal")
_VALUE = re.compile(r"[Tt]he value .{1,4000}? of the type|'[^']{1,4000}'", re.DOTALL)


def kind(error: BaseException) -> Kind:
    """The kind of a failure: `memory` and `passing` may be retried, the others not."""
    text = str(error)
    module = type(error).__module__.partition(".")[0]
    if not isinstance(error, OSError) and module not in _FOREIGN:
        return "gone" if isinstance(error, CommitGone) else "final"
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "passing")


def from_spark(error: BaseException) -> bool:
    """Whether Spark itself reports it, about what it was asked to do. A lost JVM is none: it says nothing about a table."""
    return type(error).__module__.startswith("pyspark") or type(error).__name__ == "Py4JJavaError"


def cause(error: BaseException) -> str:
    """The line that says what happened, without data values and secrets; at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    named = next((line for line in lines if line.startswith("[")), "")
    named = named or next((line for line in lines if line.startswith("Caused by")), lines[0])
    return safe_text(redacted(_VALUE.sub(_hidden, named) if kind(error) == "value" else named))[:300]


def fresh_copy(error: ConsoleError) -> ConsoleError:
    """A copy of an error, to be raised again: one object raised twice would accumulate both tracebacks."""
    return type(error)(error.message, hint=error.hint, code=error.code)


def message(error: ConsoleError) -> str:
    """One line for a log: what is wrong, its code, and what to do."""
    code = f" [{error.code}]" if error.code else ""
    return safe_text(redacted(f"{error}{code}" + (f"; {error.hint}" if error.hint else "")))


def _hidden(match: re.Match[str]) -> str:
    return "a value of the type" if match[0].endswith("of the type") else "'…'"
