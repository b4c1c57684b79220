"""Driver of a region behind SSH: the same calls as for a local region, over a channel to `remote` on its host."""

import asyncio
import shlex
from contextlib import suppress
from dataclasses import replace

import console
from console.drivers.frames import FRAME, Link, error_in
from console.drivers.local import agent_config, save_tail
from console.drivers.prerequisites import Prerequisite
from console.drivers.rpc import RpcDriver
from console.drivers.ssh import pack, remote
from console.drivers.ssh.connection import Channel, Connection, Timeouts
from console.drivers.store_secrets import of_region
from console.drivers.survey import GRACE, Profile, Sample, profiled, surveyed
from console.drivers.transport import Surveyed, SurveyRequest, decoded, greet
from console.errors import ConsoleError, DataError, NoAgent, Protocol, RegionError, Unreachable
from console.model import codec
from console.model.region import Region

_SURVEY = 1 << 26  # maximum bytes of one region's survey
_SURVEY_SECONDS = 90.0
_SEND_SECONDS = 120.0
_CHECK_SECONDS = 90.0  # longer than a bucket has to answer its host


class SshDriver(RpcDriver):
    """A region whose host is reached over SSH; see docs/ssh.md."""

    def __init__(self, region: Region, *, tick_seconds: float = 0.5, timeouts: Timeouts | None = None) -> None:
        self.connection = Connection(region, timeouts or Timeouts())
        self._ssh = SshTransport(region, self.connection, tick_seconds, timeouts or Timeouts())
        super().__init__(region, self._ssh)

    async def look(self) -> tuple[Prerequisite, ...]:
        """Prerequisites on the region's host, checked there; starts no agent.

        raises  the error that prevents the check: no connection, a host key, our key, or no console there
        """
        return await self._ssh.look()

    async def profile(self, sample: Sample) -> Profile:
        """The keys of a landing table's JSON column, from a sample of its files; starts no agent."""
        return await self._ssh.profile(sample)

    async def close(self) -> None:
        await super().close()
        await self.connection.close()


class SshTransport:
    """Finds or starts the agent of a region behind SSH: implements `drivers.transport.AgentTransport`."""

    def __init__(self, region: Region, connection: Connection, tick_seconds: float, timeouts: Timeouts) -> None:
        assert region.transport
        self._region = region
        self._connection = connection
        self._bootstrap = region.transport.bootstrap
        self._config = agent_config(region, tick_seconds)
        self._timeouts = timeouts
        self._bootstrapped_on = 0  # the connection over which the agent's file was last verified

    async def dial(self, *, start: bool) -> Link:
        request = remote.Request(
            do="dial",
            region=self._region.name,
            warehouse=self._region.warehouse,
            start=start,
            start_seconds=self._timeouts.start,
            beat=self._timeouts.beat,
            config=self._config if start else {},
        )
        channel = await self._open_channel(request)
        try:
            timeout = self._timeouts.answer + (self._timeouts.start if start else 0)
            its_warehouse = await self._ready(channel, timeout)
            channel.beat(self._timeouts.beat)
        except BaseException:
            await _close_channel(channel)
            raise
        link = Link(channel, channel, self._region.name)
        try:
            await greet(link, its_warehouse)
        except BaseException:
            await link.close()
            raise
        return link

    async def survey(self, request: SurveyRequest) -> Surveyed:
        answer = surveyed(request, await self._request_line(survey_request(request), _SURVEY_SECONDS))
        if isinstance(answer, ConsoleError):
            raise self._as_remote(answer)
        return answer

    async def look(self) -> tuple[Prerequisite, ...]:
        line = await self._request_line(
            remote.Request(do="look", region=self._region.name, warehouse=self._region.warehouse), _CHECK_SECONDS
        )
        match codec.loads(line):
            case {"tool": str(tool), "found": found}:
                return (*self._same(tool), *decoded(tuple[Prerequisite, ...], found, self._region.name))
        raise self._refused(line)

    async def profile(self, sample: Sample) -> Profile:
        line = await self._request_line(
            remote.Request(do="profile", region=self._region.name, warehouse=self._region.warehouse, sample=sample),
            sample.seconds + 2 * GRACE,
        )
        try:
            return profiled(self._region.name, line)
        except Protocol:
            raise
        except ConsoleError as error:
            raise self._as_remote(error) from None

    async def _request_line(self, request: remote.Request, seconds: float) -> bytes:
        """Send a request and return the host's answer, one line.

        raises  Unreachable; Protocol if the host prints anything else first
        """
        channel = await self._open_channel(request)
        try:
            line = await channel.line(_SURVEY, seconds)
            if not line:
                raise await self._exit_error(channel)
            self._refuse_foreign_output(line)
            return line
        finally:
            await _close_channel(channel)

    def _same(self, tool: str) -> tuple[Prerequisite, ...]:
        if tool == console.__version__:
            return ()
        detail = f"it is {tool} there and {console.__version__} here"
        return (Prerequisite("version", None, detail, "use the same version of console on both sides"),)

    def save_tail(self, tail: bytes) -> str:
        return save_tail(self._region.name, tail)

    async def _open_channel(self, request: remote.Request) -> Channel:
        """Start the remote process and send it a request, with the credentials that the processes it starts need.

        raises  RegionError E_CREDENTIALS for references of the region's file that lead to nothing on this machine
        """
        if request.do != "dial" or request.start:  # a running agent has its own
            found = await asyncio.to_thread(of_region, self._region)
            request = replace(request, credentials=tuple(found.items()))
        if self._bootstrap:
            await self._bootstrap_agent()
        channel = await self._connection.run(pack.started() if self._bootstrap else " ".join(remote.COMMAND))
        channel.write(codec.dumps(request).encode() + b"\n")
        return channel

    async def _ready(self, channel: Channel, seconds: float) -> str:
        """The warehouse path that the remote agent reports."""
        line = await channel.line(FRAME, seconds)
        if not line:
            raise await self._exit_error(channel)
        self._refuse_foreign_output(line)
        match codec.loads(line):
            case {"ready": remote.READY, "warehouse": str(its_warehouse)}:
                return its_warehouse
        raise self._refused(line)

    def _refused(self, line: bytes) -> ConsoleError:
        """The error in the host's answer, or an error for an answer without one."""
        try:
            error = error_in(codec.loads(line), self._region.name)
        except Protocol as none:
            return Protocol(f"{self._region.name}: {none}", region=self._region.name, code="E_PROTOCOL")
        if error is not None:
            return self._as_remote(error)
        return Protocol(
            f"{self._region.name}: its host answers with {line[:80]!r}",
            region=self._region.name,
            hint="use the same version of console on both sides",
            code="E_PROTOCOL",
        )

    def _refuse_foreign_output(self, line: bytes) -> None:
        """raises  Protocol if a login script prints before the agent answers"""
        try:
            if isinstance(codec.loads(line.decode("utf-8")), dict):
                return
        except (UnicodeDecodeError, DataError):
            pass
        raise Protocol(
            f"{self._region.name}: its host says {line[:80]!r} before the agent's first output",
            region=self._region.name,
            hint=f"a login script there prints it: it must print nothing without a terminal; "
            f"the output is in {self.save_tail(line[-4096:])}",
            code="E_PROTOCOL",
        )

    async def _bootstrap_agent(self) -> None:
        """Ensure that the agent's file is complete on the host; once per connection."""
        if self._bootstrapped_on and self._bootstrapped_on == self._connection.connections:
            return
        channel = await self._connection.run(pack.receiver())
        try:
            answer = await channel.line(1 << 16, self._timeouts.answer)
            if answer == b"send":
                channel.write(pack.packed()[0])
                channel.end_input()
                answer = await channel.line(1 << 16, _SEND_SECONDS)
            if not answer:
                raise await self._exit_error(channel)
        finally:
            await _close_channel(channel)
        if wrong := pack.taken(answer.decode("utf-8", "replace"), self._region.name):
            raise wrong
        self._bootstrapped_on = self._connection.connections

    async def _exit_error(self, channel: Channel) -> ConsoleError:
        """Why a remote process ended without an answer."""
        name, code = self._region.name, await channel.code()
        stderr = channel.stderr.decode("utf-8", "replace").strip().splitlines()
        last = stderr[-1][:300] if stderr else "it printed nothing"
        if code is None:
            return Unreachable(f"{name}: the connection to its host broke", region=name, code="E_SSH")
        if code == 127:
            hint = (
                "install Python 3.11 or later there"
                if self._bootstrap
                else "install console there and put it on that PATH, or set `bootstrap: true`"
            )
            missing = "python3" if self._bootstrap else remote.COMMAND[0]
            return RegionError(
                f"{name}: there is no `{missing}` on the PATH of its host", region=name, hint=hint, code="E_NO_CONSOLE"
            )
        return RegionError(
            f"{name}: the process on its host ended with exit code {code}: {last}",
            region=name,
            hint=self._where(),
            code="E_FAR",
        )

    def _as_remote(self, error: ConsoleError) -> ConsoleError:
        """An error from the host, whose hints name paths and commands on the host."""
        if isinstance(error, NoAgent):  # an agent cannot be followed from here
            error.hint = f"on its host: console follow --warehouse {shlex.quote(self._region.warehouse)}"
        else:
            error.hint = f"{error.hint} ({self._where()})" if error.hint else self._where()
        return error

    def _where(self) -> str:
        return f"on {self._connection.host}"


def survey_request(ask: SurveyRequest) -> remote.Request:
    return remote.Request(
        do="survey",
        region=ask.region,
        warehouse=ask.warehouse,
        pipeline=ask.pipeline,
        landing=ask.landing,
        state=ask.state,
        past=ask.past,
        config={
            **remote.LATER,
            **({} if ask.tables else {"tables": False}),
            **({"hours": ask.hours} if ask.hours else {}),
            **({"after": ask.after} if ask.after is not None else {}),
        },
    )


async def _close_channel(channel: Channel) -> None:
    channel.close()
    with suppress(OSError):
        await channel.wait_closed()
