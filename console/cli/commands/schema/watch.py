"""`console schema observe --dsn`: DDL as a running PostgreSQL executes it."""

from typing import TYPE_CHECKING, Any

from console.cli.interrupt import carry
from console.cli.voice import Voice
from console.cli.wiring import session
from console.text import safe_text

if TYPE_CHECKING:
    from console.cli.commands.schema.observe import Place
    from console.propagation.migration import Phase
    from console.propagation.observe.events import Observation
    from console.stores.watch import Told, Watch

_PAUSE_SECONDS = 0.5


def from_dsn(place: "Place", dsn: str, phase: "Phase | None", *, watch: bool, remove: bool) -> int:
    """Take what was recorded since the last time; with `watch` go on until interrupted, then remove the recorder."""
    from console.stores.files import dsn_of
    from console.stores.postgres import Postgres
    from console.stores.watch import Watch

    recorder = Watch(Postgres("postgresql", dsn_of(dsn)))
    voice = Voice(session().flags)
    if remove:
        recorder.remove()
        voice.talk("the recorder is removed")
        return 0
    new = recorder.install()
    voice.talk("recording from now on" if new else "recording since an earlier call")
    if not watch:
        _taken(place, recorder, phase)
        if new:
            voice.talk("the same command takes what was recorded; --remove ends it")
        return 0
    carry(_until_interrupted(place, recorder, phase), lambda: "the recorder is removed")
    return 0


async def _until_interrupted(place: "Place", recorder: "Watch", phase: "Phase | None") -> None:
    import asyncio

    try:
        while True:
            _taken(place, recorder, phase)
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        _taken(place, recorder, phase)
        recorder.remove()


def _taken(place: "Place", recorder: "Watch", phase: "Phase | None") -> None:
    """Write down every transaction before it is forgotten there: a kill in between writes the same files again."""
    for told in recorder.take():
        place.deliver(observed(place, told, phase))
        recorder.settle(told)


def observed(place: "Place", told: "Told", phase: "Phase | None") -> "Observation":
    """One transaction's DDL as migrations, and what of it was ignored."""
    from dataclasses import replace

    from console.propagation.observe.events import Ignored
    from console.propagation.observe.read import observe

    where = f"transaction {told.xid}"
    found = observe([(where, told.script)], [(where, told.before)], place.replication, phase)
    others: list[Any] = [
        Ignored(
            where,
            tag.lower().replace(" ", "_"),
            "it changes no column of a table that was there",
            safe_text(f"{tag} {name}"),
        )
        for tag, name in told.others
    ]
    return replace(found, ignored=(*found.ignored, *others))
