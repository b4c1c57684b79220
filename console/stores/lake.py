"""What Iceberg and Delta have in common: tables of our own in the lake itself, commits that others overtake, errors told."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from console.errors import ConsoleError, RegionError, Unreachable
from console.stores.clickhouse import first_line
from console.stores.protocol import LeftOut, Record

T = TypeVar("T")
_ATTEMPTS: Final = 12  # of a commit that others overtake
_PAUSE_SECONDS: Final = 0.05


def records(rows: Iterable[Mapping[str, Any]]) -> tuple[Record, ...]:
    return tuple(Record(**row) for row in sorted(rows, key=lambda row: (row["seq"], row["at"])))


def left_out(rows: Iterable[Mapping[str, Any]]) -> tuple[LeftOut, ...]:
    """Counts of one column summed, since the first of them."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for row in rows:
        key = (row["place"], row["column"])
        count, since = sums.get(key, (0, row["at"]))
        sums[key] = (count + row["rows"], min(since, row["at"]))
    return tuple(LeftOut(*key, *value) for key, value in sorted(sums.items()))


def retried(commit: Callable[[], T], overtaken: type[Exception]) -> T:
    """A commit, made again where another came first; the last attempt's error is the caller's."""
    for attempt in range(_ATTEMPTS):
        try:
            return commit()
        except overtaken:
            time.sleep(_PAUSE_SECONDS * (attempt + 1))
    return commit()


@contextmanager
def telling(store: str, lake: str, address: str, away: Callable[[Exception], bool]) -> Iterator[None]:
    """A client's errors as ours.

    away    whether an error says that nobody answered
    raises  Unreachable, which is safe to repeat; RegionError for what was refused
    """
    try:
        yield
    except (ConsoleError, TypeError):
        raise
    except Exception as error:
        if away(error):
            raise Unreachable(
                f"{store}: no answer from {lake} at {address}: {first_line(error)}",
                hint="see that it is there and that its address is right; the same command goes on where it stopped",
            ) from None
        raise RegionError(f"{store}: {lake} refused: {type(error).__name__}: {first_line(error)}") from None
