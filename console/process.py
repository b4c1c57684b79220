"""Other processes of this machine: their identity, and running one for its output, off the event loop.

asyncio's subprocesses are not used: a closing loop cancels its tasks, and a process start that is cancelled half way
waits forever for pipes that are never opened (CPython 3.11), so that the console would not exit.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

_PIECE = 1 << 16


def birth(pid: int) -> str:
    """The start time of a process, in the system's own form; "" if it has ended. A pid alone may have been reused."""
    if Path("/proc/self/stat").exists():
        try:
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if state in "ZX" else fields[18]
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()


def leave(code: int) -> NoReturn:
    """End this process now, with all its threads.

    An ordinary exit waits for busy threads, and for the destructors of libraries whose own threads still run.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Exit code and output; `cut`: it was killed because its output exceeded the limit."""

    code: int
    answer: bytes
    errors: bytes
    cut: bool


async def run_process(
    command: Sequence[str], stdin: bytes, environment: Mapping[str, str], *, answer: int, errors: int
) -> ProcessResult:
    """Run a command with this input, and wait for its end. It is killed when this is cancelled.

    answer, errors  limits of its standard output and error, in bytes
    raises          OSError if it cannot be started
    """
    child = _Child(command, environment, (answer, errors))
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[ProcessResult] = loop.create_future()

    def finish(result: ProcessResult | OSError) -> None:
        if ended.done():
            return
        if isinstance(result, OSError):
            ended.set_exception(result)
        else:
            ended.set_result(result)

    def work() -> None:
        try:
            result: ProcessResult | OSError = child.run(stdin)
        except OSError as error:
            result = error
        with suppress(RuntimeError):  # the loop is closed: the result is no longer needed
            loop.call_soon_threadsafe(finish, result)

    # daemon: a process that survives SIGKILL for a while, on a hanging disk, must not delay the exit
    threading.Thread(target=work, name=f"asks {command[-1]}", daemon=True).start()
    try:
        return await ended
    finally:
        child.kill()


class _Child:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str], most: tuple[int, int]) -> None:
        self._command, self._environment, self._most = list(command), dict(environment), most
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._cut = False

    def run(self, stdin: bytes) -> ProcessResult:
        pipe = subprocess.PIPE
        with subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment) as process:
            self._process = process
            if self._killed:  # before the process existed
                process.kill()
            assert process.stdin
            assert process.stdout
            assert process.stderr
            errors = bytearray()
            besides = (
                threading.Thread(target=self._put, args=(process.stdin, stdin), daemon=True),
                threading.Thread(target=self._read, args=(process.stderr, errors, self._most[1]), daemon=True),
            )
            for thread in besides:
                thread.start()
            answer = bytearray()
            self._read(process.stdout, answer, self._most[0])
            for thread in besides:
                thread.join()
        return ProcessResult(process.returncode, bytes(answer), bytes(errors), self._cut)

    def kill(self) -> None:
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def _put(self, stream: IO[bytes], data: bytes) -> None:
        with suppress(OSError):  # it ended without reading its input: its output gives the reason
            stream.write(data)
            stream.close()

    def _read(self, stream: IO[bytes], buffer: bytearray, most: int) -> None:
        while piece := stream.read(_PIECE):
            buffer += piece
            if len(buffer) > most:
                self._cut = True
                self.kill()
                return
