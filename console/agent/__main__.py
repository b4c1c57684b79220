"""`python -m console.agent`: the region's service, and the commands that need neither its lock nor its socket."""

import argparse
import asyncio
import dataclasses
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console import __version__, aws_profile, paths
from console.errors import ConsoleError, RegionError, Unreachable, no_warehouse, require_spark, type_name
from console.model import beside, codec
from console.model.connect_address import TOKEN
from console.process import leave
from console.text import guard_tracebacks, hide, one_line, redacted

# the agent restarts itself: its JVM is lost, or was ended and has left memory behind
RESTART = 75


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="console agent")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="follow and build in one region, until stopped")
    serve.add_argument("--warehouse", required=True)
    serve.add_argument("--config", default="", help="`-`: settings as JSON on stdin; else those kept in the region")
    commands.add_parser("survey", help="answer surveys for many regions: JSON list on stdin, a line each on stdout")
    lease = commands.add_parser("lease", help="who holds the lease of a region in a bucket: one JSON object on stdout")
    lease.add_argument("what", choices=("show", "force"))
    lease.add_argument("--warehouse", required=True)
    commands.add_parser("archive", help="prepare the JVM's classes once, for faster starts")
    commands.add_parser("replay", help="run compiled queries over rows that come with them: JSON lines in and out")
    commands.add_parser("profile", help="list the keys of a JSON column: one JSON object on stdin, one on stdout")
    commands.add_parser("connect", help="what a Spark Connect server is: one JSON object on stdin, one on stdout")
    backfill = commands.add_parser("backfill", help="the second Spark of a running agent: JSON lines in and out")
    backfill.add_argument("--warehouse", required=True)
    return _run(parser.parse_args(argv))


def _run(args: argparse.Namespace) -> int:
    guard_tracebacks()
    _in_utc()
    try:
        match args.command:
            case "serve":
                return _serve(args.warehouse, args.config)
            case "survey":
                return _survey()
            case "replay":
                return _replay()
            case "profile":
                return _profile()
            case "lease":
                return _lease(args.what, args.warehouse)
            case "connect":
                return _connect()
            case "backfill":
                return _backfill(args.warehouse)
            case _:
                return _archive()
    except ConsoleError as error:
        print(json.dumps({"error": _fields(error)}), flush=True)
        print(f"error: {redacted(str(error))}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code


def _in_utc() -> None:
    """Spark returns times to Python in the process's own zone, without an offset: make that zone UTC."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def _fields(error: ConsoleError) -> dict[str, str]:
    return {"type": type_name(error), "message": redacted(str(error)), "hint": error.hint, "code": error.code}


def _survey() -> int:
    from concurrent.futures import ThreadPoolExecutor

    gc.disable()  # the process ends with its answer, whose hundreds of thousands of days would be searched for garbage again and again
    # deltalake releases the interpreter's lock while it reads a log
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for answer in pool.map(_surveyed, json.load(sys.stdin)):
            print(json.dumps(answer, separators=(",", ":")), flush=True)
    return 0


def _surveyed(entry: dict[str, Any]) -> Any:
    location = str(entry["warehouse"]).removeprefix("file://")
    try:
        answer = _surveyed_store(location, entry) if "://" in location else _surveyed_disk(Path(location), entry)
    except ConsoleError as error:
        return {"error": _fields(error)}
    return codec.encode(answer) if entry.get("later") else beside.split(answer)[0]


def _surveyed_disk(warehouse: Path, entry: dict[str, Any]) -> dict[str, Any]:
    from console.agent.survey import check_warehouse, survey

    region, pipeline = str(entry["region"]), str(entry["pipeline"])
    check_warehouse(region, warehouse)
    answer: dict[str, Any] = {}
    if entry.get("tables", True):
        answer["live"] = survey(warehouse, region, pipeline, [str(name) for name in entry["landing"]])
    if rollout := str(entry.get("past", "")):
        from console.agent.receipts.history import read_history

        after = entry.get("after")
        answer["past"] = read_history(warehouse, pipeline, rollout, None if after is None else int(after))
    if hours := float(entry.get("hours") or 0.0):
        from console.agent.store.samples import SampleRing

        answer["samples"] = SampleRing(warehouse).since(pipeline, time.time() - hours * 3600)
    if entry.get("state"):
        answer["state"] = _state(warehouse, pipeline)
    return answer


def _surveyed_store(location: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The answer for a warehouse on an object store; of one that has releases only in a bucket of S3."""
    from deltalake.exceptions import DeltaError

    from console.agent.object_store.object_path import place
    from console.agent.store_survey import has_releases, survey, unreachable
    from console.model.receipt import Past
    from console.model.status import Status

    region, pipeline = str(entry["region"]), str(entry["pipeline"])
    if has_releases(location, region, pipeline):
        try:
            return _surveyed_disk(place(location), entry)
        except (DeltaError, OSError) as error:
            raise unreachable(region, location, error) from None
    answer: dict[str, Any] = {}
    if entry.get("tables", True):
        answer["live"] = survey(location, region, pipeline, [str(name) for name in entry["landing"]])
    if entry.get("past"):
        answer["past"] = Past(rollouts=())
    if entry.get("hours"):
        answer["samples"] = ()
    if entry.get("state"):
        answer["state"] = {"status": Status(), "plan": None, "releases": []}
    return answer


def _state(warehouse: Path, pipeline: str) -> dict[str, Any]:
    from console.agent.cleanup.hold_store import HoldStore
    from console.agent.feeds.unattended import resting
    from console.agent.sandboxes.store import SandboxStore
    from console.agent.store.ledger import Releases, Rollouts
    from console.model.event import Recorded
    from console.model.status import fold

    rollouts, stored_releases = Rollouts(warehouse, pipeline), Releases(warehouse, pipeline)
    releases, status = stored_releases.all(), rollouts.status()
    sandboxes = SandboxStore(warehouse, pipeline).listed(stored_releases)
    lagging = dataclasses.replace(
        resting(warehouse, releases), sandboxes=sandboxes, on_hold=HoldStore(warehouse, pipeline).all()
    )
    status = fold(status, Recorded(status.rollout, 0, time.time(), lagging))
    return {
        "status": status,
        "plan": rollouts.plan(status.rollout),
        "releases": [stored.row for stored in releases],
    }


def _archive() -> int:
    from console.agent import class_archive

    print(class_archive.make())
    return 0


def _replay() -> int:
    from console.agent.witness.replay import replay

    for answer in replay(sys.stdin):
        print(answer, flush=True)
    return 0


def _profile() -> int:
    from deltalake.exceptions import DeltaError

    from console.agent.object_store.object_path import in_bucket
    from console.agent.store.profile import Budget, profile

    request = json.load(sys.stdin)
    table, budget = str(request["table"]), Budget(bytes=int(request["bytes"]), seconds=float(request["seconds"]))
    try:
        if in_bucket(table):
            aws_profile.export()
        result = profile(table, str(request["column"]), str(request["time"]), budget)
    except ConsoleError as error:  # part of the output, as in a survey
        result = {"error": _fields(error)}
    except (DeltaError, OSError) as error:
        if not in_bucket(table):
            raise
        result = {"error": _fields(Unreachable(f"{table}: {one_line(error)}", hint=aws_profile.SOURCES))}
    print(json.dumps(result, separators=(",", ":")), flush=True)
    return 0


def _connect() -> int:
    from console.agent.connect.facts import read_facts

    require_spark()
    request = json.load(sys.stdin)
    conf = {str(name): str(value) for name, value in request["conf"].items()}
    hide([*conf.items(), (TOKEN, os.environ.get(TOKEN, ""))])
    print(json.dumps(codec.encode(read_facts(str(request["remote"]), conf)), separators=(",", ":")), flush=True)
    return 0


def _backfill(location: str) -> int:
    from console.agent.second_spark.worker import serve

    serve(location)
    return 0


def _lease(what: str, location: str) -> int:
    from console.agent.bucket_lock import force, shown
    from console.agent.object_store.object_path import ObjectPath

    warehouse = _warehouse(location)
    if not isinstance(warehouse, ObjectPath):
        raise RegionError(f"{location} is on a disk, where the lock is a file", hint="console lock show")
    print(json.dumps(force(warehouse) if what == "force" else shown(warehouse), separators=(",", ":")), flush=True)
    return 0


def _serve(location: str, config: str) -> int:
    from console.agent.agent_log import write_log
    from console.agent.service import Service
    from console.agent.settings import keep_settings, load_settings
    from console.agent.store.host_folder import own_folder

    require_spark()
    warehouse = _warehouse(location)
    stored = own_folder(warehouse) / "agent.json"
    text = sys.stdin.read() if config == "-" else stored.read_text() if stored.exists() else "{}"
    settings = load_settings(text)
    hide(settings.conf.items())
    hide((name, value) for name, value in os.environ.items() if name.startswith("AWS_") or name == TOKEN)
    socket_path = paths.socket_path(location)
    lock = _locked(warehouse, settings, {"socket": str(socket_path), "tool": __version__, "region": settings.region})
    keep_settings(warehouse, settings)
    service = Service(warehouse, settings, lock.fd)
    service.agent.start()
    code = asyncio.run(_loop(service, socket_path, lambda: lock.lost))
    service.agent.stop()
    if code == RESTART:
        # In the same process. The lock must not survive the exec.
        lock.leave()
        os.execv(sys.executable, [sys.executable, "-m", "console.agent", "serve", "--warehouse", location])
    if (why := lock.lost) is not None:
        raise why
    lock.leave()
    write_log("agent", "info", "ended; the next one continues where it stopped")
    return 0


def _locked(warehouse: Path, settings: Any, facts: dict[str, Any]) -> Any:
    """The region's lock, held: `RegionLock` on a disk, `BucketLock` in a bucket."""
    from console.agent.bucket_lock import BucketLock, refuse_untried
    from console.agent.connect.sessions import check_region
    from console.agent.lock import RegionLock
    from console.agent.object_store import spark_conf
    from console.agent.object_store.object_path import ObjectPath

    if settings.remote:
        check_region(warehouse, settings.remote)
    if not isinstance(warehouse, ObjectPath):
        lock = RegionLock(warehouse)
        lock.take(facts, timeout=15.0)
        return lock
    if not settings.remote:
        refuse_untried(settings.master)
        if settings.backfill_master:
            refuse_untried(settings.backfill_master)
        spark_conf.jars()  # before the lease: an agent that cannot work keeps nobody out
    bucket_lock = BucketLock(warehouse)
    bucket_lock.take(facts)
    return bucket_lock


async def _loop(service: Any, socket_path: Path, lost: Callable[[], object] = lambda: None) -> int:
    from console.agent.agent_log import describe, write_log
    from console.agent.server import Server

    server = Server(service, socket_path)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(name, server.end)
    serving = asyncio.create_task(server.run())
    write_log("agent", "info", f"serves {service.agent.warehouse}; Ctrl-C or SIGTERM ends it")
    logged, seconds = "", 1.0
    while not serving.done():
        await asyncio.wait([serving], timeout=seconds)
        try:
            service.agent.tick()
            seconds = service.agent.tick_seconds
        except Exception as error:  # retried at the next tick: the region's feeds depend on this process
            if (text := describe(error)) != logged:
                write_log("agent", "error", text)
            logged = text
        if lost() is not None:
            server.end()
            await serving
            return 0
        if service.agent.driver_lost() or (server.unattended and service.agent.sleeper.may_restart):
            server.restart()
            await serving
            return RESTART
    await serving
    return 0


def _warehouse(location: str) -> Path:
    """The warehouse's folder, on a disk or in a bucket of S3; other stores are not proven to arbitrate (P4).

    raises  RegionError E_STORE for another store, E_PATH for a path below which Delta writes no table, E_CREDENTIALS;
            DataError if there is no such folder
    """
    from console.agent.object_store.object_path import in_bucket, place

    text = location.removeprefix("file://")
    if in_bucket(text):
        aws_profile.export()
        return place(text)
    if "://" in text:
        raise RegionError(
            f"{location}: of object stores only S3 is served: the lock and the log of others are not proven here",
            hint="use s3://, or a directory on a disk of the region's host",
            code="E_STORE",
        )
    if what := paths.unfit_here(text):
        raise RegionError(f"{location}: no Delta table can lie below {what!r}", hint=paths.UNFIT, code="E_PATH")
    warehouse = Path(text)
    if not warehouse.is_dir():
        raise no_warehouse("", warehouse)
    return warehouse


if __name__ == "__main__":
    # At the end of an interpreter a native library whose threads still run was seen to abort the process, and a channel of Spark
    # Connect waits, for ever, for threads that are gone already.
    leave(main())
