"""A Spark of this machine that runs compiled queries over given rows: how a witness is proven before it is shown."""

import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from console.drivers.survey import agent_command, agent_environment
from console.errors import Protocol, RegionError, Unreachable, require_spark

_SECONDS = 300.0  # a JVM's cold start on a busy machine included
_ENDS_SECONDS = 10.0
Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Given:
    """One table that comes with a question: its columns as (name, Spark type), and rows in JSON's values."""

    columns: tuple[tuple[str, str], ...]
    rows: Rows

    def document(self) -> dict[str, Any]:
        return {"columns": self.columns, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Ran:
    """What one query gave: columns, their types, rows; or an error and nothing else."""

    columns: tuple[str, ...]
    rows: Rows
    error: str = ""
    kinds: tuple[str, ...] = ()


class Replayer:
    """`console.agent replay` as a process of ours: started by the first question, ended by `close`.

    conf  Spark settings of the region whose answer is wanted
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
        """End the process at once, from any thread: what is being asked then fails, and so does all that is asked later."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()

    def ask(self, tables: Mapping[str, Given], queries: Sequence[str]) -> tuple[Ran, ...]:
        """Run queries over these tables, and those of earlier questions that they do not replace.

        raises  Unreachable where no answer comes in time; RegionError where the process ends
        """
        if self._stopped:
            raise RegionError("the replaying Spark was stopped", code="E_REPLAY")
        if self._process is None:
            self._start()
        question = {"tables": {name: table.document() for name, table in tables.items()}, "queries": list(queries)}
        self._say(question)
        return tuple(_ran(answer) for answer in self._next()["answers"])

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
        if self._stopped:  # meanwhile, by one who saw no process yet
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
        with suppress(BrokenPipeError):  # its last words tell why
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
            case {"answers": list()} as answer:
                return dict(answer)
            case {"error": {"message": message, "hint": hint}}:
                raise RegionError(f"no Spark to replay on: {message}", hint=str(hint), code="E_REPLAY")
        raise Protocol("the replaying Spark gave an invalid answer", code="E_PROTOCOL")


def _ran(answer: Mapping[str, Any]) -> Ran:
    if error := answer.get("error"):
        return Ran((), (), str(error))
    names, kinds = (tuple(str(column[i]) for column in answer["columns"]) for i in range(2))
    return Ran(names, tuple(tuple(row) for row in answer["rows"]), "", kinds)
