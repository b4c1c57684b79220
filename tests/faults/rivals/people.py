"""Several people with a console each, as real processes in front of one region."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path


class Person:
    """The real command line, under a name and with a journal of one's own; `project` may be somebody's own edit."""

    def __init__(self, name: str, home: Path, project: Path, pipeline: str) -> None:
        self.name = name
        self._words = ("--project", str(project), "--pipeline", pipeline, "--no-input")
        self._env = {**os.environ, "CONSOLE_HOME": str(home / name), "LOGNAME": name, "USER": name}

    def start(self, *words: str) -> "Started":
        command = [sys.executable, "-m", "console.main", *words, *self._words]
        return Started(
            subprocess.Popen(command, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )

    async def run(self, *words: str) -> tuple[int, str]:
        """Exit code, and all that was said."""
        return await self.start(*words).end()


class Started:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    async def end(self) -> tuple[int, str]:
        data, talk = await asyncio.to_thread(self.process.communicate)
        return self.process.returncode, data + talk

    def stop(self) -> None:
        """SIGSTOP, and return when it stands."""
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)
