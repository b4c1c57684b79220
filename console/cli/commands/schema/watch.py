"""`console schema observe --dsn`: DDL as a running PostgreSQL executes it."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from console.cli.commands.schema.destination import Destination
from console.cli.interrupt import Interrupted, run_interruptible
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.errors import DataError
from console.propagation.observe.events import Ignored
from console.propagation.observe.read import observe
from console.stores.files import dsn_of
from console.stores.source.postgres import Postgres
from console.stores.source.watch import Watch
from console.text import safe_text

if TYPE_CHECKING:
    from console.propagation.migration import Phase
    from console.propagation.observe.events import Observation
    from console.stores.source.watch import RecordedDdl

_PAUSE_SECONDS = 0.5
_SHOWN = 300  # letters of a statement that was not understood


def from_dsn(destination: Destination, dsn: str, phase: "Phase | None", *, watch: bool, remove: bool) -> int:
    """Collect the DDL recorded since the last call; with `watch` continue until interrupted, then remove the recorder.

    raises  DataError at the end, naming the transactions that could not be read; the others are written nevertheless
    """
    recorder = Watch(Postgres("postgresql", dsn_of(dsn)))
    output = Output(cli_context().flags)
    if remove:
        recorder.remove()
        output.info("the recorder is removed")
        return 0
    new = recorder.install()
    output.info("recording from now on" if new else "recording since an earlier call")
    taking = Taking(destination, recorder, phase, output)
    if not watch:
        taking.take()
        if new:
            output.info("the same command takes what was recorded; --remove ends it")
        taking.end()
        return 0
    try:
        run_interruptible(_until_interrupted(taking, recorder), lambda: "the recorder is removed")
    except Interrupted:
        taking.end()
        raise
    return 0


async def _until_interrupted(taking: "Taking", recorder: "Watch") -> None:
    try:
        while True:
            taking.take()
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        try:
            taking.take()
        finally:
            recorder.remove()


class Taking:
    """Collects a recorder's entries; remembers those that could not be read."""

    def __init__(self, destination: Destination, recorder: "Watch", phase: "Phase | None", output: Output) -> None:
        self._destination, self._recorder, self._phase, self._output = destination, recorder, phase, output
        self._unread: list[int] = []

    def take(self) -> None:
        """Write down every transaction before it is forgotten there: a kill in between writes the same files again.

        An unreadable transaction is reported and forgotten: later ones could not be interpreted from the tables as they were before it.
        """
        for recorded in self._recorder.take():
            try:
                observation = observed(self._destination, recorded, self._phase)
            except DataError as error:
                self._unread.append(recorded.xid)
                self._output.print_error(error)
                self._output.info("\n".join(safe_text(line, _SHOWN) for line in recorded.script.splitlines()))
            else:
                self._destination.deliver(observation)
            self._recorder.settle(recorded)

    def end(self) -> None:
        """raises  DataError naming the unreadable transactions"""
        if self._unread:
            raise DataError(
                f"not understood, and written nowhere: transaction {', '.join(map(str, self._unread))}",
                hint="their SQL is shown above: write it in a supported form for console schema observe FILE.sql;"
                " console schema verify --write finds what the stores lack",
            )


def observed(destination: Destination, recorded: "RecordedDdl", phase: "Phase | None") -> "Observation":
    """One transaction's DDL as migrations, and its ignored statements."""
    where = f"transaction {recorded.xid}"
    observation = observe([(where, recorded.script)], [(where, recorded.before)], destination.replication, phase)
    others: list[Any] = [
        Ignored(
            where=where,
            kind=tag.lower().replace(" ", "_"),
            reason="it changes no column of a table that was there",
            statement=safe_text(f"{tag} {name}"),
        )
        for tag, name in recorded.others
    ]
    return replace(observation, ignored=(*observation.ignored, *others))
