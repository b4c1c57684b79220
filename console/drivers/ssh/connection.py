"""One verified SSH connection per region, and the remote processes started through it.

~/.ssh/config is not read: it can disable the check of host keys or run programs (`ProxyCommand`, `Match exec`).
"""

import asyncio
import random
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import asyncssh

from console.drivers.frames import TAIL
from console.drivers.ssh.trust import HostKeys, refused, signing
from console.errors import ConsoleError, DataError, RegionError, Unreachable
from console.model.region import Region

_ATTEMPTS = 3  # to connect, if the host refuses at once: its sshd restarts, or sheds load
_QUICK_SECONDS = 2.0
_JUMP = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^:@\[\]\s]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Timeouts in seconds. A link silent for `beat` is probed, `beats` times, before it counts as lost.

    connect  until the host answers · login  until it accepts our key · answer  until the remote process's first line
    start    until an agent started there listens
    """

    connect: float = 10.0
    login: float = 20.0
    answer: float = 30.0
    start: float = 90.0
    beat: float = 15.0
    beats: int = 3


class Channel:
    """A remote process; its stdin and stdout read and write like asyncio's streams. A lost connection is an OSError."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]", peer: str) -> None:
        self.stderr = b""  # the last bytes of its stderr
        self._process = process
        self._peer = peer
        self._unread = b""
        self._tasks = [asyncio.create_task(self._listen(), name=f"stderr {peer}")]

    async def read(self, n: int, /) -> bytes:
        if self._unread:
            unread, self._unread = self._unread[:n], self._unread[n:]
            return unread
        try:
            return await self._process.stdout.read(n)
        except asyncssh.Error as error:
            raise ConnectionError(error.reason or type(error).__name__) from None

    async def line(self, limit: int, seconds: float) -> bytes:
        """The first line without its end, or the bytes before the stream ended; b"" only if there were none.

        A blank line keeps its end, to show that a login script has printed it.

        raises  Unreachable if neither comes in time or the connection breaks
        """
        got, end, rest = bytearray(), b"", b""
        try:
            async with asyncio.timeout(seconds):
                while not end and len(got) < limit:
                    chunk = await self.read(1 << 16)
                    if not chunk:
                        return bytes(got)
                    line, end, rest = chunk.partition(b"\n")
                    got += line
        except TimeoutError:
            raise Unreachable(
                f"{self._peer}: its host accepted the login, but nothing answers there after {seconds:g} s",
                region=self._peer,
                hint="log in there: is it short of memory or disk?",
            ) from None
        except OSError as error:
            raise Unreachable(f"{self._peer}: the connection broke: {error}", region=self._peer) from None
        self._unread = rest
        return bytes(got) or end

    def write(self, data: bytes, /) -> None:
        with suppress(OSError):  # as with asyncio's streams, the reader gets the error of a lost connection
            self._process.stdin.write(data)

    async def drain(self) -> None:
        try:
            await self._process.stdin.drain()
        except asyncssh.Error as error:
            raise ConnectionError(error.reason) from None

    def end_input(self) -> None:
        with suppress(OSError):
            self._process.stdin.write_eof()

    def beat(self, seconds: float) -> None:
        """Send a blank line as heartbeat from now on; the remote process ends when it misses them."""
        self._tasks.append(asyncio.create_task(self._beating(seconds), name=f"beat {self._peer}"))

    async def code(self) -> int | None:
        """Its exit code once it has ended; None if it was killed or the connection broke."""
        with suppress(TimeoutError, asyncssh.Error):
            async with asyncio.timeout(5):
                await self._process.wait_closed()
        return self._process.returncode if self._process.exit_signal is None else None

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._process.close()

    async def wait_closed(self) -> None:
        with suppress(TimeoutError, asyncssh.Error):
            async with asyncio.timeout(2):  # over a dead connection the disconnect is never answered
                await self._process.wait_closed()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        with suppress(asyncssh.Error):
            while chunk := await self._process.stderr.read(1 << 16):
                self.stderr = (self.stderr + chunk)[-TAIL:]

    async def _beating(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self.write(b"\n")


class Connection:
    """The region's connection, opened when first needed and reopened after a failure.

    connections  number opened so far
    """

    def __init__(self, region: Region, timeouts: Timeouts) -> None:
        assert region.transport
        self.connections = 0
        self._region = region
        self._ssh = region.transport
        self._timeouts = timeouts
        self._hops: list[asyncssh.SSHClientConnection] = []  # the region's host is the last
        self._connecting = asyncio.Lock()

    @property
    def host(self) -> str:
        return self._ssh.host

    async def run(self, command: str) -> Channel:
        """Start a remote process.

        raises  Unreachable; RegionError for an unknown host key or a rejected key of ours; DataError for unusable files of ours
        """
        connection = await self._connected()
        try:
            async with asyncio.timeout(self._timeouts.login):
                process = await connection.create_process(command, encoding=None)
        except TimeoutError:
            raise self._unreachable(f"does not answer for {self._timeouts.login:g} s") from None
        except (asyncssh.Error, OSError) as error:
            raise self._unreachable(f"starts no process: {error}") from None
        return Channel(process, self._region.name)

    async def close(self) -> None:
        """Disconnect from the hosts; processes there continue."""
        async with self._connecting:
            await self._disconnect()

    async def _disconnect(self) -> None:
        hops, self._hops = self._hops, []
        for hop in reversed(hops):
            hop.close()
            try:
                async with asyncio.timeout(2):
                    await hop.wait_closed()
            except (TimeoutError, asyncssh.Error, OSError):
                hop.abort()
                await asyncio.sleep(0)  # for the socket to be closed

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._hops and not any(hop.is_closed() for hop in self._hops):
                return self._hops[-1]
            await self._disconnect()
            for attempt in range(1, _ATTEMPTS + 1):
                began = time.monotonic()
                try:
                    await self._connect()
                    break
                except Unreachable:
                    await self._disconnect()
                    if attempt == _ATTEMPTS or time.monotonic() - began > _QUICK_SECONDS:
                        raise
                except ConsoleError:
                    await self._disconnect()
                    raise
                await asyncio.sleep(0.3 * 3**attempt * random.uniform(0.3, 1.0))
            self.connections += 1
            return self._hops[-1]

    async def _connect(self) -> None:
        if self._ssh.jump:
            jump = _JUMP.fullmatch(self._ssh.jump)
            if not jump or not 0 < int(jump["port"] or 22) < 65_536:
                raise DataError(
                    f"{self._region.name}: jump: {self._ssh.jump!r:.80} is not a host",
                    region=self._region.name,
                    hint="write it as user@host:port",
                )
            await self._hop(jump["host"].strip("[]"), int(jump["port"] or 22), jump["user"] or self._ssh.user)
        await self._hop(self._ssh.host.strip("[]"), self._ssh.port, self._ssh.user)

    async def _hop(self, host: str, port: int, user: str) -> None:
        name = self._region.name
        keys = HostKeys(name, self._ssh.known_hosts)
        try:
            hop = await asyncssh.connect(
                host,
                port,
                tunnel=self._hops[-1] if self._hops else (),
                client_factory=lambda: keys,
                known_hosts=keys.known,
                connect_timeout=self._timeouts.connect,
                login_timeout=self._timeouts.login,
                keepalive_interval=self._timeouts.beat,
                keepalive_count_max=self._timeouts.beats,
                username=user or (),
                **signing(name, self._ssh.key),
                **_CLOSED,
            )
        except (asyncssh.Error, OSError, ValueError) as error:
            # a host without a key of the known type disconnects without a message
            hung_up = isinstance(error, (asyncssh.ConnectionLost, ConnectionResetError))
            if hung_up and keys.knows(host, port) and await self._has_other_key(keys, host, port):
                raise refused(name, keys, host, port, "") from None
            raise self._explained(error, keys, host, port) from None
        self._hops.append(hop)

    async def _has_other_key(self, keys: HostKeys, host: str, port: int) -> bool:
        """Whether the host presents a key that is not among its known ones."""
        with suppress(TimeoutError, asyncssh.Error, OSError):
            async with asyncio.timeout(self._timeouts.connect):
                tunnel: Any = self._hops[-1] if self._hops else ()
                key = await asyncssh.get_server_host_key(host, port, tunnel=tunnel, config=None)
                return key is not None and not keys.trusts(host, port, key)
        return False

    def _explained(self, error: Exception, keys: HostKeys, host: str, port: int) -> ConsoleError:
        """The operator's error for a failure to connect."""
        name, place = self._region.name, f"{host}:{port}"
        match error:
            case asyncssh.HostKeyNotVerifiable() | asyncssh.KeyExchangeFailed():
                return refused(name, keys, host, port, error.reason)
            case asyncssh.PermissionDenied():
                user = self._ssh.user or "your own name"
                return RegionError(
                    f"{name}: {place} does not accept {user}'s public key",
                    region=name,
                    hint="set `user` and `key` of `transport.ssh`, or ssh-add the key; passwords are never used",
                    code="E_SSH_AUTH",
                )
            case TimeoutError():
                return self._unreachable(f"{place} does not answer in {self._timeouts.connect:g} s")
            case asyncssh.Error():
                return self._unreachable(f"{place}: {error.reason}")
        return self._unreachable(
            f"{place}: {error.strerror if isinstance(error, OSError) and error.strerror else error}"
        )

    def _unreachable(self, why: str) -> Unreachable:
        return Unreachable(
            f"{self._region.name}: no SSH: {why}",
            region=self._region.name,
            hint="is the host up, and reachable from here?",
            code="E_SSH",
        )


# disables every option by which a host could be trusted unchecked, prompt for input, or connect back to us
_CLOSED: dict[str, Any] = {
    "config": None,
    "password": None,
    "password_auth": False,
    "kbdint_auth": False,
    "host_based_auth": False,
    "gss_auth": False,
    "gss_kex": False,
    "preferred_auth": "publickey",
    "disable_trivial_auth": True,
    "agent_forwarding": False,
    "x11_forwarding": False,
    "x509_trusted_certs": None,
    "pkcs11_provider": None,
    "proxy_command": None,
    "send_env": None,
    "env": None,
}
