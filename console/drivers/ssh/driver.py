"""A region behind SSH as a driver: the same calls as on this machine, over a channel to the far side's `far`."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

import console
from console.drivers.frames import FRAME, Link, rebuild
from console.drivers.local import agent_config, keep_tail
from console.drivers.prerequisites import Prerequisite
from console.drivers.rpc import RpcDriver, Surveyed, greet, shaped
from console.drivers.ssh import pack, remote
from console.drivers.ssh.connection import Channel, Connection, Pace
from console.drivers.survey import GRACE, Profile, Sample, SurveyRequest, profiled, surveyed
from console.errors import ConsoleError, DataError, Protocol, RegionError, Unreachable
from console.model import codec
from console.model.region import Region

_SURVEY = 1 << 26  # bytes one region's survey may have
_SURVEY_SECONDS = 90.0
_SEND_SECONDS = 120.0
_LOOK_SECONDS = 60.0


class SshDriver(RpcDriver):
    """A region whose host is reached over SSH; see docs/ssh.md."""

    def __init__(self, region: Region, *, tick_seconds: float = 0.5, pace: Pace | None = None) -> None:
        self.connection = Connection(region, pace or Pace())
        self._over = SshReach(region, self.connection, tick_seconds, pace or Pace())
        super().__init__(region, self._over)

    async def look(self) -> tuple[Prerequisite, ...]:
        """How the region's host is set up, as it says itself; starts nothing there.

        raises  what keeps us from it: no connection, a host key, our key, no console there
        """
        return await self._over.look()

    async def profile(self, sample: Sample) -> Profile:
        """The keys of a landing table's JSON column, from a sample of its files; starts no agent."""
        return await self._over.profile(sample)

    async def close(self) -> None:
        await super().close()
        await self.connection.close()


class SshReach:
    """How the agent of a region behind SSH is found, or started: `drivers.rpc.Reach`."""

    def __init__(self, region: Region, connection: Connection, tick_seconds: float, pace: Pace) -> None:
        assert region.transport
        self._region = region
        self._connection = connection
        self._bootstrap = region.transport.bootstrap
        self._config = agent_config(region, tick_seconds)
        self._pace = pace
        self._brought = 0  # the connection over which the agent's file was last seen whole

    async def dial(self, *, start: bool) -> Link:
        request = remote.Request(
            "dial",
            self._region.name,
            self._region.warehouse,
            start=start,
            start_seconds=self._pace.start,
            beat=self._pace.beat,
            config=self._config if start else {},
        )
        channel = await self._asked(request)
        try:
            patience = self._pace.answer + (self._pace.start if start else 0)
            held = await self._ready(channel, patience)
            channel.beat(self._pace.beat)
        except BaseException:
            await _left(channel)
            raise
        link = Link(channel, channel, self._region.name)
        try:
            await greet(link, held)
        except BaseException:
            await link.close()
            raise
        return link

    async def ask(self, pipeline: str, landing: Sequence[str], state: bool, past: str = "") -> Surveyed:
        ask = SurveyRequest(self._region.name, self._region.warehouse, pipeline, tuple(landing), state, past)
        answer = surveyed(ask, await self._told(remote.Request("survey", **asdict(ask)), _SURVEY_SECONDS))
        if isinstance(answer, ConsoleError):
            raise self._there(answer)
        return answer

    async def look(self) -> tuple[Prerequisite, ...]:
        line = await self._told(remote.Request("look", self._region.name, self._region.warehouse), _LOOK_SECONDS)
        match codec.loads(line):
            case {"tool": str(tool), "found": found}:
                return (*self._same(tool), *shaped(tuple[Prerequisite, ...], found, self._region.name))
        raise self._refused(line)

    async def profile(self, sample: Sample) -> Profile:
        line = await self._told(
            remote.Request("profile", self._region.name, self._region.warehouse, sample=sample),
            sample.seconds + 2 * GRACE,
        )
        try:
            return profiled(self._region.name, line)
        except Protocol:
            raise
        except ConsoleError as error:
            raise self._there(error) from None

    async def _told(self, request: remote.Request, seconds: float) -> bytes:
        """The one line by which the far side answers a request.

        raises  Unreachable; Protocol where its host speaks first
        """
        channel = await self._asked(request)
        try:
            line = await channel.line(_SURVEY, seconds)
            if not line:
                raise await self._ended(channel)
            self._see_words(line)
            return line
        finally:
            await _left(channel)

    def _same(self, tool: str) -> tuple[Prerequisite, ...]:
        if tool == console.__version__:
            return ()
        detail = f"it is {tool} there and {console.__version__} here"
        return (Prerequisite("version", None, detail, "use the same version of console on both sides"),)

    def keep(self, tail: bytes) -> str:
        return keep_tail(self._region.name, tail)

    async def _asked(self, request: remote.Request) -> Channel:
        """A far process that has been told what we want."""
        if self._bootstrap:
            await self._bring()
        channel = await self._connection.run(pack.started() if self._bootstrap else " ".join(remote.COMMAND))
        channel.write(codec.dumps(request).encode() + b"\n")
        return channel

    async def _ready(self, channel: Channel, seconds: float) -> str:
        """The warehouse that the agent at the other end holds, as it names it."""
        line = await channel.line(FRAME, seconds)
        if not line:
            raise await self._ended(channel)
        self._see_words(line)
        match codec.loads(line):
            case {"ready": remote.READY, "warehouse": str(held)}:
                return held
        raise self._refused(line)

    def _refused(self, line: bytes) -> ConsoleError:
        """The error that the far side answered, or that it answered none."""
        match codec.loads(line):
            case {"error": {"message": message, **rest}}:
                try:
                    error = rebuild({"code": 0, "message": message, "data": rest})
                except Protocol as none:
                    return Protocol(f"{self._region.name}: {none}", code="E_PROTOCOL")
                return self._there(error)
        return Protocol(
            f"{self._region.name}: its host greets us with {line[:80]!r}",
            hint="use the same version of console on both sides",
            code="E_PROTOCOL",
        )

    def _see_words(self, line: bytes) -> None:
        """raises  Protocol where the login speaks before the agent does"""
        try:
            if isinstance(codec.loads(line.decode("utf-8")), dict):
                return
        except (UnicodeDecodeError, DataError):
            pass
        raise Protocol(
            f"{self._region.name}: its host says {line[:80]!r} before the agent's first word",
            hint=f"a login script there prints it: it must be silent where no terminal is; "
            f"what was said is in {self.keep(line[-4096:])}",
            code="E_PROTOCOL",
        )

    async def _bring(self) -> None:
        """See that the agent's file lies on the host, whole, once a connection."""
        if self._brought and self._brought == self._connection.made:
            return
        channel = await self._connection.run(pack.receiver())
        try:
            answer = await channel.line(1 << 16, self._pace.answer)
            if answer == b"send":
                channel.write(pack.packed()[0])
                channel.end_input()
                answer = await channel.line(1 << 16, _SEND_SECONDS)
            if not answer:
                raise await self._ended(channel)
        finally:
            await _left(channel)
        if wrong := pack.taken(answer.decode("utf-8", "replace"), self._region.name):
            raise wrong
        self._brought = self._connection.made

    async def _ended(self, channel: Channel) -> ConsoleError:
        """Why a far process ended without a word."""
        name, code = self._region.name, await channel.code()
        said = channel.said.decode("utf-8", "replace").strip().splitlines()
        last = said[-1][:300] if said else "it said nothing"
        if code is None:
            return Unreachable(f"{name}: the connection to its host broke", code="E_SSH")
        if code == 127:
            hint = (
                "install Python 3.11 or later there"
                if self._bootstrap
                else "install console there and put it on that PATH, or set `bootstrap: true`"
            )
            missing = "python3" if self._bootstrap else remote.COMMAND[0]
            return RegionError(
                f"{name}: there is no `{missing}` on the PATH of its host", hint=hint, code="E_NO_CONSOLE"
            )
        return RegionError(
            f"{name}: the far side ended with exit code {code}: {last}", hint=self._where(), code="E_FAR"
        )

    def _there(self, error: ConsoleError) -> ConsoleError:
        """An error of the far side, whose hints speak of paths and commands over there."""
        if error.code == "E_NO_AGENT":  # from here no agent is followed
            error.hint = f"on its host: console follow --warehouse {shlex.quote(self._region.warehouse)}"
        else:
            error.hint = f"{error.hint} ({self._where()})" if error.hint else self._where()
        return error

    def _where(self) -> str:
        return f"on {self._connection.host}"


async def _left(channel: Channel) -> None:
    channel.close()
    with suppress(OSError):
        await channel.wait_closed()
