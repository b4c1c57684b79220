"""Starts and ends a PostgreSQL of Debian's packages in a directory of its own, reached by its Unix socket alone."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

OPTIONS = {
    "listen_addresses": "",
    "wal_level": "logical",
    "max_wal_senders": "8",
    # a consumer reads nothing while a store renames columns, which takes minutes where each statement is killed
    "wal_sender_timeout": "0",
    "max_replication_slots": "8",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "40",
    "shared_buffers": "32MB",
    "timezone": "UTC",
}


def binaries() -> Path:
    """Where initdb and pg_ctl lie: the newest of Debian's, else the one in PATH."""
    results = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    in_path = shutil.which("initdb")
    if not results and in_path is None:
        raise RuntimeError("no PostgreSQL server here: make postgres, or apt-get install postgresql")
    return (results[-1] if results else Path(str(in_path)).resolve()).parent


class Postgres:
    """One server. It refuses to run as root, so root's runs as the user `postgres`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="console-pg-", dir="/tmp"))
        self._user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(self._folder, self._user)
        self._data = self._folder / "data"

    def start(self) -> "Postgres":
        self._run(
            "initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"
        )
        options = " ".join(f"-c {key}='{value}'" for key, value in OPTIONS.items())
        log = str(self._folder / "log")
        words = (f"{options} -c unix_socket_directories='{self._folder}'", "-l", log, "-w", "-t", "60", "start")
        self._run("pg_ctl", "-D", str(self._data), "-o", *words)
        return self

    def stop(self) -> None:
        if self._data.is_dir():
            self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def dsn(self, database: str = "postgres") -> str:
        return f"host={self._folder} dbname={database} user=postgres"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def _run(self, program: str, *words: str) -> None:
        command = [str(binaries() / program), *words]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={self._user}", f"--regid={self._user}", "--init-groups", *command]
        # the server inherits what it is given: a pipe would stay open as long as it lives
        with tempfile.TemporaryFile("w+") as message:
            code = subprocess.run(
                command, cwd="/", stdout=message, stderr=message, stdin=subprocess.DEVNULL, check=False
            ).returncode
            message.seek(0)
            if code:
                raise RuntimeError(f"{program}: {message.read()}")
