"""Ranges of commits as Spark reads them, planned once for all feeds that copy the same one in a tick.

Feeds at one position of one source have the same range, so its schema, the footers of its files, an excerpt of its log and
Spark's list of its files are the same. The rows are scanned by each query: a copy of them in Spark's memory costs as much as it
saves (docs/decisions/0034).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

from console.agent.feeds import ranges
from console.agent.rows import log_excerpt

Key = tuple[str, ranges.Range, tuple[str, ...], tuple[str, ...]]


class Readings:
    """What was planned within one `with`; afterwards no rows of it can be read."""

    def __init__(self) -> None:
        self._folders = ExitStack()
        self._session: Any = None
        self._planned: dict[Key, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._planned.clear()
        self._folders.close()

    def rows(
        self,
        session: Any,
        source: str,
        commits: ranges.Range,
        version: str,
        *,
        foreign: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> Any:
        """The rows of a range of a source, as a DataFrame of this session; as of `ranges.read`.

        version  path of a managed version where an excerpt of the log may be put
        """
        if session is not self._session:  # the former one may have ended with its JVM
            self._session = session
            self._planned.clear()
        key = (source, commits, tuple(foreign), tuple(columns))
        if key not in self._planned:
            scratch = self._folders.enter_context(log_excerpt.place(version))
            self._planned[key] = ranges.read(session, source, commits, scratch, foreign=foreign, columns=columns)
        return self._planned[key]
