"""Columns that arrive for a pipeline's stores without being stored, for `console status`."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from console.cli.format import count
from console.errors import ConsoleError
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.region import Region
    from console.stores.files import ReplicationConfig, Site
    from console.stores.protocol import LeftOut

_TIMEOUT_SECONDS = 10.0  # seconds for all stores together: `status` has to be fast during an incident
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """One store's answer. error: why there is none, or "".

    region, store  its names; of an error in replication.yaml, the file's folder and name
    """

    region: str
    store: str
    columns: "tuple[LeftOut, ...]" = ()
    error: str = ""

    @property
    def name(self) -> str:
        return f"{self.region}/{self.store}" if self.region else self.store


def arriving(
    root: Path, pipeline: str, regions: "Sequence[Region]", timeout: float = _TIMEOUT_SECONDS
) -> list[StoreAnswer]:
    """Each store's columns that arrive without being stored; [] if the pipeline has no replication.

    A problem with a store, or with the file that names it, becomes an entry.

    timeout  seconds; a store that has not answered by then becomes an entry that says so
    """
    if not (root / "plans" / pipeline / "replication.yaml").is_file():
        return []
    # with these come the parsers of all dialects, which `status` of most projects has no use for
    from console.stores.files import REPLICATION, read_plan, sites

    try:
        plan = read_plan(root, pipeline)
    except ConsoleError as error:
        return [StoreAnswer(f"plans/{pipeline}", REPLICATION, error=str(error))]
    failed: list[StoreAnswer] = []
    asked: list[Site] = []
    for target in plan.replication.stores:
        try:
            asked += sites(plan, regions, [target.name])
        except ConsoleError as error:
            failed.append(StoreAnswer("", target.name, error=str(error)))
    answers = _answers([partial(_ask, plan, site) for site in asked], timeout)
    silent = f"no answer within {timeout:g} s"
    return failed + [
        answers.get(rank, StoreAnswer(site.region.name, site.target.name, error=silent))
        for rank, site in enumerate(asked)
    ]


def _answers(questions: Sequence[Callable[[], StoreAnswer]], timeout: float) -> dict[int, StoreAnswer]:
    """The answers that arrive in time, by rank; threads that still wait do not delay the exit."""
    ranks: Iterator[int] = iter(range(len(questions)))
    taking, answered = threading.Lock(), SimpleQueue[tuple[int, StoreAnswer]]()

    def work() -> None:
        while True:
            with taking:
                rank = next(ranks, None)
            if rank is None:
                return
            answered.put((rank, questions[rank]()))

    for _ in range(min(_AT_ONCE, len(questions))):
        threading.Thread(target=work, daemon=True).start()
    answers: dict[int, StoreAnswer] = {}
    until = time.monotonic() + timeout
    while len(answers) < len(questions):
        try:
            rank, answer = answered.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            break
        answers[rank] = answer
    return answers


def _ask(plan: "ReplicationConfig", site: "Site") -> StoreAnswer:
    from console.stores.consumer import lagging  # as in `arriving`

    store = site.open()
    try:
        return StoreAnswer(site.region.name, site.target.name, lagging(store, site.target, plan.replication))
    except ConsoleError as error:
        return StoreAnswer(site.region.name, site.target.name, error=str(error))
    finally:
        store.close()


def arriving_text(answers: Sequence[StoreAnswer]) -> str:
    """The lines below a status; "" if everything is stored."""
    lines = []
    for one in answers:
        if one.error:
            message = one.error if one.name in one.error else f"{one.name}: {one.error}"
            lines.append(safe_text(message))
        for column in one.columns:
            lines.append(
                f"{one.name}: {safe_text(column.place)}.{safe_text(column.column)}: {count(column.rows, 'row')}"
            )
    return "\n".join(["arriving but not stored:", *(f"  {line}" for line in lines)]) if lines else ""


def arriving_data(answers: Sequence[StoreAnswer]) -> list[dict[str, Any]]:
    """For `--output json`."""
    return [
        {
            "region": one.region,
            "store": one.store,
            "columns": [{"table": c.place, "column": c.column, "rows": c.rows, "since": c.since} for c in one.columns],
            "error": one.error,
        }
        for one in answers
    ]
