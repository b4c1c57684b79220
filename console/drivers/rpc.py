"""The Driver protocol over a link to an agent, independent of the link's transport."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from console import errors
from console.drivers.audit import hearing_audit
from console.drivers.frames import Link
from console.drivers.protocol import QueryResult, RegionState, Who
from console.drivers.transport import AgentTransport, SurveyRequest, decoded, plausible
from console.errors import DataError, FrameTooLong, NewerFormat, NoAgent, Unreachable
from console.model.compared import NO_PAGE, ComparedPage, DayExamples
from console.model.consent import Declaration
from console.model.event import Promoted, Recorded, RolledBack, fleeting
from console.model.fleet import FleetWaves
from console.model.live import Live, Release
from console.model.load import EventRun, LoadState
from console.model.measured import FeedSample, SamplePage
from console.model.plan import Plan
from console.model.receipt import AuditProgress, Finding, Past
from console.model.region import Region
from console.model.sandbox import Sandbox
from console.model.status import Status, Verb
from console.model.tuning import Tuning

T = TypeVar("T")

# timeouts in seconds: from the logs alone · a state change · requests that may start Spark or wait for a running batch
_QUICK, _CHANGE, _LONG = 30.0, 120.0, 900.0
_AUDIT = 4 * 3600.0  # reads every row that a rollout has copied


def _signature(who: Who) -> dict[str, str]:
    """The caller's identity. Only a console that controls a rollout sends its own id: older agents do not know the field."""
    return {"by": who.name, "host": who.host, **({"console": who.console} if who.console else {})}


def _of_sandbox(release: str) -> dict[str, str]:
    """The `release` parameter, only if needed: older agents refuse it as unknown."""
    return {"release": release} if release else {}


class RpcDriver:
    """A region behind an agent. Implements `drivers.protocol.Driver`."""

    def __init__(self, region: Region, reach: AgentTransport) -> None:
        self.region = region
        self._transport = reach
        self._link: Link | None = None
        self._dialing = asyncio.Lock()

    def _about(self, pipeline: str) -> SurveyRequest:
        """A request for anything but the survey of the tables."""
        region = self.region
        return SurveyRequest(region=region.name, warehouse=region.warehouse, pipeline=pipeline, tables=False)

    async def _surveyed(self, pipeline: str, landing: Sequence[str]) -> Live:
        """The survey without the agent's help."""
        request = replace(self._about(pipeline), landing=tuple(landing), tables=True)
        if (live := (await self._transport.survey(request)).live) is None:
            name = self.region.name
            raise errors.Protocol(f"{name}: the survey left out the tables", region=name, code="E_PROTOCOL")
        return live

    async def survey(self, pipeline: str, landing: Sequence[str]) -> Live:
        link = await self._listening()
        if link is None:
            return await self._surveyed(pipeline, landing)
        try:
            data = await self._call_on(link, "survey", {"pipeline": pipeline, "landing": list(landing)}, _QUICK)
        except FrameTooLong:
            return await self._surveyed(pipeline, landing)  # too long for one line of the socket
        return self._decode(Live, data)

    async def state(self, pipeline: str) -> RegionState:
        link = await self._listening()
        if link is None:
            state = (await self._transport.survey(replace(self._about(pipeline), state=True))).state
            if state is None:
                raise errors.Protocol(
                    f"{self.region.name}: the survey left out the state", region=self.region.name, code="E_PROTOCOL"
                )
            return replace(state, attended=False)
        return self._decode(RegionState, await self._call_on(link, "state", {"pipeline": pipeline}, _QUICK))

    async def history(self, pipeline: str, rollout: str = "") -> Past:
        # read directly, never through the agent: one rollout may be longer than a frame
        past = (await self._transport.survey(replace(self._about(pipeline), past=rollout or "*"))).past
        if past is None:
            raise errors.Protocol(
                f"{self.region.name}: the survey left out the past", region=self.region.name, code="E_PROTOCOL"
            )
        return past

    async def compared(self, pipeline: str, rollout: str, after: int = 0) -> ComparedPage:
        # read directly, like the history: a page is a frame, and an older agent has no such method
        past = (await self._transport.survey(replace(self._about(pipeline), past=rollout, after=after))).past
        return NO_PAGE if past is None else past.compared

    async def examples(self, pipeline: str, table: str, day: str) -> DayExamples:
        params = {"pipeline": pipeline, "table": table, "day": day}
        return self._decode(DayExamples, await self._call("examples", params, _LONG))

    async def samples(self, pipeline: str, hours: float, feed: str | None = "") -> tuple[FeedSample, ...]:
        link = await self._listening()
        if link is None:
            measured = (await self._transport.survey(replace(self._about(pipeline), hours=hours))).samples
            return tuple(sample for sample in measured if feed in (None, sample.feed))
        pages: list[SamplePage] = []
        while not pages or pages[-1].before:
            before = pages[-1].before if pages else 0
            params = {"pipeline": pipeline, "hours": hours, "feed": feed, "before": before}
            try:
                page = self._decode(SamplePage, await self._call_on(link, "samples", params, _QUICK))
            except DataError:
                if pages:
                    raise
                return ()  # an older agent has no such method
            if before and page.before >= before:
                raise self._unexpected("samples", {"before": page.before})
            pages.append(page)
        return tuple(sample for page in reversed(pages) for sample in page.samples)

    async def verify(
        self, pipeline: str, rollout: str, tell: Callable[[AuditProgress], None] | None = None
    ) -> tuple[Finding, ...]:
        params = {"pipeline": pipeline, "rollout": rollout}
        await self.start_agent()
        heard: list[AuditProgress] = []

        def hear(progress: AuditProgress) -> None:
            heard.append(progress)
            if tell:
                tell(progress)

        link = await self._transport.dial(start=False)
        async with hearing_audit(link, hear):
            try:
                findings = await self._call_on(link, "audit", params, _AUDIT)
            except DataError:
                if heard:
                    raise
                findings = await self._call("verify", params, _AUDIT)  # an older agent has no `audit`
        return self._decode(tuple[Finding, ...], findings)

    async def start_agent(self) -> None:
        await self._dialed(start=True)

    async def accept(self, plan: Plan, who: Who, *, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        params = {"plan": plan, **_signature(who), "attached": attached}
        if fleet is not None:
            params["fleet"] = fleet
        rollout: str = self._fields("accept", await self._call("accept", params, _CHANGE), rollout=str)["rollout"]
        return rollout

    async def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
        link = await self._transport.dial(start=False)
        try:
            link.listen()
            await self._begin_watch(link, {"pipeline": pipeline, "after": after}, _signature(who) if who else {})
            async for method, params in link.notifications():
                if method != "event":
                    raise self._unexpected("watch", {"method": method})
                try:
                    recorded = self._decode(Recorded, params)
                except NewerFormat:
                    if fleeting(params):
                        continue
                    raise
                yield plausible(recorded, self.region.name)
        except errors.Protocol as error:
            raise self._with_tail(error, link) from None
        finally:
            await link.close()

    async def _begin_watch(self, link: Link, params: dict[str, Any], signature: dict[str, str]) -> None:
        """Watch with a name if the agent accepts one: an older one refuses the parameters."""
        if signature:
            try:
                await self._call_on(link, "watch", {**params, **signature}, _QUICK)
                return
            except DataError:
                pass
        await self._call_on(link, "watch", params, _QUICK)

    async def control(self, pipeline: str, verb: Verb, who: Who) -> Status:
        params = {"pipeline": pipeline, "verb": verb, **_signature(who)}
        return self._decode(Status, await self._call("control", params, _CHANGE))

    async def tune(self, pipeline: str, change: Tuning, who: Who, *, reset: bool = False) -> Status:
        params = {"pipeline": pipeline, "tuning": change, **_signature(who), "reset": reset}
        return self._decode(Status, await self._call("tune", params, _CHANGE))

    async def note(self, pipeline: str, text: str, who: Who) -> Status:
        params = {"pipeline": pipeline, "text": text, "by": who.name, "host": who.host}
        return self._decode(Status, await self._call("note", params, _CHANGE))

    async def declare(self, pipeline: str, rollout: str, declared: Declaration, who: Who) -> Status:
        signed = replace(declared, by=who.name, host=who.host)
        params = {"pipeline": pipeline, "rollout": rollout, "declared": signed}
        return self._decode(Status, await self._call("declare", params, _CHANGE))

    async def accept_until(self, pipeline: str, release: str, days: Mapping[str, str], who: Who) -> dict[str, str]:
        params = {"pipeline": pipeline, "release": release, "days": dict(days), "by": who.name, "host": who.host}
        moved = self._fields("accept_until", await self._call("accept_until", params, _CHANGE), days=dict)["days"]
        return self._decode(dict[str, str], moved)

    async def take_over(self, pipeline: str, who: Who) -> Status:
        return self._decode(Status, await self._call("take_over", {"pipeline": pipeline, **_signature(who)}, _CHANGE))

    async def maintain(self, pipeline: str, who: Who, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        params = {"pipeline": pipeline, "by": who.name, "host": who.host, **request}
        done = self._fields("maintain", await self._call("maintain", params, _AUDIT), done=list)["done"]
        return self._decode(tuple[dict[str, Any], ...], done)

    async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
        params = {"pipeline": pipeline, "rollout": rollout, "live": live, **_signature(who)}
        return self._decode(Promoted, await self._call("promote", params, _LONG))

    async def rollback(self, pipeline: str, live: str, who: Who) -> RolledBack:
        params = {"pipeline": pipeline, "live": live, "by": who.name, "host": who.host}
        return self._decode(RolledBack, await self._call("rollback", params, _LONG))

    async def cleanup(
        self,
        pipeline: str,
        who: Who,
        *,
        dry_run: bool = False,
        previous: bool = False,
        let_go: Sequence[str] = (),
        hold: float = 0.0,
    ) -> tuple[str, ...]:
        options: dict[str, Any] = {"dry_run": dry_run, "previous": previous}
        options |= {"let_go": [*let_go]} if let_go else {}
        options |= {"hold": hold} if hold else {}
        params = {"pipeline": pipeline, "by": who.name, "host": who.host, **options}
        dropped = self._fields("cleanup", await self._call("cleanup", params, _LONG), dropped=list)["dropped"]
        return self._decode(tuple[str, ...], dropped)

    async def restore(self, pipeline: str, who: Who) -> str:
        params = {"pipeline": pipeline, "by": who.name, "host": who.host}
        return str(self._fields("restore", await self._call("restore", params, _CHANGE), release=str)["release"])

    async def preview(self, plan: Plan, who: Who, *, name: str, days: int, hours: float, live: bool = False) -> Sandbox:
        params = {"plan": plan, "name": name, "days": days, "hours": hours, "by": who.name, "host": who.host}
        params |= {"live": True} if live else {}
        return self._decode(Sandbox, await self._call("preview", params, _CHANGE))

    async def preview_release(self, pipeline: str, name: str) -> Release:
        params = {"pipeline": pipeline, "name": name}
        return self._decode(Release, await self._call("preview_release", params, _QUICK))

    async def drop_preview(self, pipeline: str, name: str, who: Who) -> tuple[str, ...]:
        params = {"pipeline": pipeline, "name": name, "by": who.name, "host": who.host}
        dropped = self._fields("drop_preview", await self._call("drop_preview", params, _LONG), dropped=list)["dropped"]
        return self._decode(tuple[str, ...], dropped)

    async def query(
        self,
        pipeline: str,
        sql: str,
        tables: Sequence[str],
        args: Mapping[str, tuple[str, str]],
        limit: int,
        *,
        release: str = "",
    ) -> QueryResult:
        typed = {name: list(pair) for name, pair in args.items()}
        params = {"pipeline": pipeline, "sql": sql, "tables": list(tables), "args": typed, "limit": limit}
        params |= _of_sandbox(release)
        return self._decode(QueryResult, await self._call("query", params, _LONG))

    async def run(
        self, pipeline: str, kind: Literal["copy", "sink"], name: str, who: Who, run: str = "", *, release: str = ""
    ) -> dict[str, Any]:
        params = {"pipeline": pipeline, "kind": kind, "name": name, "by": who.name, "host": who.host}
        params |= {**({"run": run} if run else {}), **_of_sandbox(release)}
        done = await self._call("run", params, _LONG)
        return self._fields("run", done, rows=int, **({"already": bool} if kind == "copy" else {}))

    async def ingest(
        self, pipeline: str, table: str, batch: str, lines: Sequence[str], run: EventRun | None = None, shape: str = ""
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"pipeline": pipeline, "table": table, "batch": batch, "lines": list(lines)}
        # an older agent has none of these
        params |= ({"run": run} if run else {}) | ({"shape": shape} if shape else {})
        return self._fields("ingest", await self._call("ingest", params, _CHANGE), rows=int, already=bool)

    async def check(
        self, pipeline: str, table: str, lines: Sequence[str], at: Sequence[tuple[int, int]], shape: str = ""
    ) -> str:
        params = {"pipeline": pipeline, "table": table, "lines": list(lines), "at": list(at)}
        params |= {"shape": shape} if shape else {}
        answer: str = self._fields("check", await self._call("check", params, _CHANGE), schema=str)["schema"]
        return answer

    async def landed(
        self, pipeline: str, table: str, load: str, first: str, *, named: bool, batch: str = "", after: int = 0
    ) -> LoadState:
        options = {"named": named, "batch": batch, "after": after}
        params = {"pipeline": pipeline, "table": table, "load": load, "first": first, **options}
        return self._decode(LoadState, await self._call("landed", params, _CHANGE))

    async def marks(self, pipeline: str, table: str, load: str, rows: int) -> bytes:
        params = {"pipeline": pipeline, "table": table, "load": load, "rows": rows}
        marks = self._fields("marks", await self._call("marks", params, _CHANGE), marks=str)["marks"]
        try:
            return b64decode(marks, validate=True)
        except ValueError:
            raise self._unexpected("marks", marks) from None

    async def stop(self) -> None:
        link = await self._listening()
        if link is None:
            return
        try:
            await link.call("shutdown", {}, seconds=_CHANGE)
        except Unreachable:
            if link.ended is None:
                raise
        await self.close()

    async def close(self) -> None:
        await self._drop()

    async def _drop(self) -> None:
        link, self._link = self._link, None
        if link:
            await link.close()

    async def _listening(self) -> Link | None:
        try:
            return await self._dialed(start=False)
        except NoAgent:
            return None

    async def _dialed(self, *, start: bool) -> Link:
        async with self._dialing:
            if self._link and self._link.ended:
                await self._drop()
            if self._link is None:
                self._link = await self._transport.dial(start=start)
            return self._link

    async def _call(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        return await self._call_on(await self._dialed(start=True), method, params, seconds)

    async def _call_on(self, link: Link, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        try:
            return await link.call(method, params, seconds=seconds)
        except errors.Protocol as error:
            raise self._with_tail(error, link) from None

    def _decode(self, cls: type[T], data: object) -> T:
        return decoded(cls, data, self.region.name)

    def _fields(self, method: str, data: Any, **kinds: type) -> dict[str, Any]:
        if not isinstance(data, dict) or any(type(data.get(name)) is not kind for name, kind in kinds.items()):
            raise self._unexpected(method, data)
        return data

    def _unexpected(self, method: str, data: object) -> errors.Protocol:
        answer = f"{self.region.name}: the agent's answer to {method} does not fit: {str(data)[:80]!r}"
        return errors.Protocol(answer, code="E_PROTOCOL")

    def _with_tail(self, error: errors.Protocol, link: Link) -> errors.Protocol:
        if not error.hint and link.tail:
            error.hint = f"its last output is in {self._transport.save_tail(link.tail)}"
        return error
