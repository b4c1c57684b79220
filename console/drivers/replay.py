"""A local Spark that runs compiled queries over given rows, for witnesses and fixture tests."""

import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from console.drivers.survey import agent_command, agent_environment
from console.errors import Protocol, RegionError, Unreachable, require_spark

_SECONDS = 300.0  # including a JVM's cold start on a busy machine
_ENDS_SECONDS = 10.0
MAX_ROWS = 1000  # of one answer
Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Given:
    """One table sent with a request: columns as (name, Spark type), rows as JSON values."""

    columns: tuple[tuple[str, str], ...]
    rows: Rows

    def document(self) -> dict[str, Any]:
        return {"columns": self.columns, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class ReplayQuery:
    """A query with parameters. args: name → (value as text, Spark type)"""

    sql: str
    args: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {"sql": self.sql, "args": self.args}


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view over given or computed rows.

    rows  a table, or queries whose united rows are stored;  added  further stored columns, as SQL over these
    read  over the view `stored`; "" for all of them
    """

    name: str
    rows: Given | tuple[str, ...]
    read: str = ""
    added: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        rows = {"given": self.rows.document()} if isinstance(self.rows, Given) else {"feeds": self.rows}
        return {"name": self.name, "read": self.read, "added": self.added, **rows}


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one query: columns, types and rows; or only an error.

    truncated  there are more rows than the replay returns
    """

    columns: tuple[str, ...]
    rows: Rows
    error: str = ""
    kinds: tuple[str, ...] = ()
    truncated: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Answers:
    """One for each query, in order. failed: view → why it could not be created"""

    ran: tuple[Ran, ...]
    failed: Mapping[str, str]


class Replayer:
    """`console.agent replay` as a child process: started by the first request, ended by `close`.

    conf  Spark settings of the region to reproduce
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        self._conf = dict(conf or {})
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        """End the process at once, from any thread: the current request and all later ones fail."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()

    def ask(self, tables: Mapping[str, Given], queries: Sequence[str]) -> tuple[Ran, ...]:
        """Run queries over these tables, and over those of earlier requests that they do not replace.

        raises  Unreachable without an answer in time; RegionError if the process ends
        """
        question = {"tables": {name: table.document() for name, table in tables.items()}, "queries": list(queries)}
        return self._ask(question).ran

    def ask_views(self, views: Sequence[StoredView], queries: Sequence[ReplayQuery]) -> Answers:
        """Create these views, in order, and run queries over them.

        raises  as `ask`
        """
        return self._ask({
            "views": [view.document() for view in views],
            "queries": [query.document() for query in queries],
            "limit": MAX_ROWS,
        })  # fmt: skip

    def _ask(self, question: Mapping[str, Any]) -> Answers:
        if self._stopped:
            raise RegionError("the replaying Spark was stopped", code="E_REPLAY")
        if self._process is None:
            self._start()
        self._say(question)
        answer = self._next()
        return Answers(tuple(_ran(one) for one in answer["answers"]), dict(answer["failed"]))

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(_ENDS_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        require_spark()
        self._process = subprocess.Popen(
            agent_command("replay"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=agent_environment(),
        )
        if self._stopped:  # in the meantime, by a caller that saw no process yet
            self._process.kill()
        threading.Thread(target=self._listen, args=(self._process,), name="replay", daemon=True).start()
        self._say({"master": "local[1]", "conf": self._conf})

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        if process.stdout is not None:
            with process.stdout:
                for line in process.stdout:
                    self._answers.put(line)
        self._answers.put(None)

    def _say(self, question: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its last output has the reason
            self._process.stdin.write(json.dumps(question, separators=(",", ":")) + "\n")
            self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=_SECONDS)
        except queue.Empty:
            raise Unreachable(f"Spark gave no answer in {_SECONDS:g} s", hint="console doctor") from None
        if line is None:
            raise RegionError("the replaying Spark ended", hint="console doctor", code="E_REPLAY")
        match json.loads(line):
            case {"answers": list(), "failed": dict()} as answer:
                return dict(answer)
            case {"error": {"message": message, "hint": hint}}:
                raise RegionError(f"no Spark to replay on: {message}", hint=str(hint), code="E_REPLAY")
        raise Protocol("the replaying Spark gave an invalid answer", code="E_PROTOCOL")


def _ran(answer: Mapping[str, Any]) -> Ran:
    if error := answer.get("error"):
        return Ran((), (), str(error))
    names, kinds = (tuple(str(column[i]) for column in answer["columns"]) for i in range(2))
    rows = tuple(tuple(row) for row in answer["rows"])
    return Ran(names, rows, "", kinds, truncated=bool(answer["truncated"]))
