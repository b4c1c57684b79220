"""Runs console as processes of their own without paying for its imports each time: one that has loaded it forks.

python -m tests.stores.forked     a JSON line {"words", "env", "out", "err"} in, the process's exit code out
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module, reload
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent.parent
LOADED = (
    "clickhouse_connect", "deltalake", "pandas", "psycopg", "pyarrow.dataset", "pyarrow.pandas_compat", "pyarrow.parquet",
    "pydantic", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "rich.console", "rich.table", "sqlalchemy.dialects.sqlite",
    "sqlglot.dialects.clickhouse", "sqlglot.optimizer.annotate_types", "sqlglot.optimizer.simplify", "yaml",
    "console.main", "console.cli.commands.schema.apply", "console.cli.commands.schema.verify", "console.drivers.identity",
    "console.project.pipeline.desired", "console.project.regions", "console.runner.migrations", "console.propagation",
    "console.propagation.clickhouse.after", "console.propagation.clickhouse.table_migration",
    "console.stores.apply", "console.stores.clickhouse", "console.stores.delta", "console.stores.iceberg",
)  # fmt: skip


class Forker:
    """The process that forks; it has no threads, and has run nothing of console's."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, words: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run([python, -m, console.main, *words])` with both streams captured."""
        if self._process is None:
            command = [sys.executable, "-m", "tests.stores.forked"]
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            order = {"words": words, "env": dict(env), "out": str(out), "err": str(err), "cwd": os.getcwd()}
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            return subprocess.CompletedProcess(["console", *words], code, out.read_text(), err.read_text())

    def stop(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


FORKER = Forker()


def child(words: list[str], env: dict[str, str], out: str, err: str, cwd: str) -> NoReturn:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for name, descriptor, how in ((os.devnull, 0, os.O_RDONLY), (out, 1, os.O_WRONLY | os.O_CREAT), (err, 2, os.O_WRONLY | os.O_CREAT)):  # fmt: skip
        opened = os.open(name, how, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    reload(import_module("console.crash"))  # which looks once at the folder that the environment names
    sys.argv = ["console", *words]
    main = import_module("console.main").main
    sys.exit(main())


def serve() -> None:
    for name in LOADED:
        import_module(name)
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            child(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
