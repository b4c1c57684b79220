"""Starts and ends the test ClickHouse; console and the tests reach it as they would reach any other."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


class ClickHouse:
    """One server over one folder. `kill` and `start` again show what a store keeps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def start(self) -> "ClickHouse":
        command = [sys.executable, str(HERE / "clickhouse_server.py"), str(self._folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def url(self, database: str = "default") -> str:
        return f"http://127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        if self._process is not None:
            ended = self._process.poll()
            self._process.kill()
            self._process.communicate()
            self._process = None
            if ended is not None:
                raise RuntimeError(f"the tests' ClickHouse ended by itself, with {ended}")
