"""S8: whatever is spoilt in a file, a plan, a journal or a message ends in a clear error, quickly and in little memory.

`CONSOLE_FUZZ=10000` runs as many cases; the seed of each is printed where it fails, and is all that it needs.
"""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from console.drivers.frames import Link
from console.drivers.rpc import RpcDriver
from console.drivers.ssh import remote
from console.drivers.survey import Sample, surveyed
from console.drivers.transport import Surveyed, SurveyRequest
from console.errors import ConsoleError, DataError, Problems, Protocol, Unreachable
from console.model import codec
from console.model.event import Entered, Progress, Promoted, Recorded
from console.model.live import Live
from console.model.pipeline import digest
from console.model.plan import Plan
from console.planning import plan as planned
from console.project import load
from console.project.saved import load_plans, save_plans
from console.runner.journal import Journal, _hash
from tests.cli.conftest import FILES, _live
from tests.hostile.memory import lean
from tests.hostile.mutate import spoilt, spoilt_json, spoilt_text

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("CONSOLE_FUZZ", "1000"))
SHARE = {"inventory": 25, "pipeline": 30, "saved plan": 15, "journal": 8, "answer": 12, "request": 10}  # percent
SECONDS = 1.0
WHOLE = {
    **FILES,
    "regions/us.yaml": """\
name: us
environment: prod
zone: Europe/Madrid
wave: 1
canary: true
warehouse: /srv/us
transport: {ssh: {host: us.example.net, port: 2222, user: ops, key: "file:/k", known_hosts: hosts, jump: "ops@gate:22"}}
spark: {master: "local[2]", conf: {spark.b: true}}
limits: {rows: 5_000_000, bytes: 20 GiB, target_seconds: 90}
follow: {share: 25%, lag: 5s, idle: 5m}
throttle: {lag: 2m, hours: "22:00-06:00", query: "SELECT true"}
policy: {promote: ask, on_failure: keep, keep_failed: 24h}
prices: {core_hour: 0.05}
overrides: {web: {tables: {landing: {retention: 3d, columns: {+ext_id: string}}}}}
""",
    "plans/web/copies/daily.sql": "/* into: by_day */ SELECT day, count(*) AS n FROM requests GROUP BY day",
    "plans/web/tables/hours.yaml": "kind: aggregate\npartition_by: [day]\ncolumns: {day: date, n: bigint, top: double}\n",
    "plans/web/materializations/hours.sql": (
        "/* into: hours */\nSELECT day, count(*) AS n, avg(length(id)) AS top FROM requests GROUP BY day"
    ),
}


class Seen:
    """What became of one case."""

    error: ConsoleError | None = None


@contextmanager
def bounded(case: str) -> Iterator[Seen]:
    """One case: only our errors get out, and neither time nor memory runs away."""
    began, seen = time.process_time(), Seen()
    with lean(case):
        try:
            yield seen
        except ConsoleError as error:
            seen.error = error
        except BaseException as error:
            raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
    assert seen.error is None or str(seen.error).strip(), case
    assert time.process_time() - began < SECONDS, f"{case}: took {time.process_time() - began:.1f} s"


ROOT = Path(__file__).resolve().parent.parent.parent
TAKEN = """
from tests.hostile.memory import lean

def taken(megabytes):
    return len(b"x" * (megabytes << 20))

assert taken(60)
with lean("as much as it may", 30):
    taken(20)
try:
    with lean("the case", 30):
        taken(45)
except AssertionError as error:
    print(error)
"""


def test_a_case_that_takes_too_much_is_seen_after_one_that_took_more() -> None:
    """In a process of its own: in this one, libraries give back what earlier tests took whenever they like."""
    done = subprocess.run([sys.executable, "-c", TAKEN], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("the case: took 4"), done.stdout


def each(grammar: str) -> Iterator[tuple[str, Random]]:
    for number in range(CASES * SHARE[grammar] // 100):
        case = f"{grammar} {number}"
        yield case, Random(case)


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def read(root: Path) -> tuple[Plan, ...]:
    """What `console plan` does with the files of a project, in regions that hold landing only."""
    project = load(root)
    results = []
    for region in project.regions:
        pipeline = project.pipeline(None, region)
        live = Live(region=region.name, pipeline=pipeline.name, release=None, stats=_live(region).stats)
        results.append(planned(pipeline, live, region, "t"))
    return tuple(results)


def spoilt_files(root: Path, which: Callable[[str], bool], grammar: str) -> None:
    names = [name for name in WHOLE if which(name)]
    codes = set()
    for case, random in each(grammar):
        name = random.choice(names)
        if name.endswith(".yaml") and random.random() < 0.5:
            data = spoilt(random, yaml.safe_load(WHOLE[name]))
            try:
                text = yaml.safe_dump(data, allow_unicode=random.random() < 0.5)
            except RecursionError:
                text = json.dumps(data)  # which is YAML too
            (root / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        else:
            (root / name).write_bytes(spoilt_text(random, WHOLE[name]))
        with bounded(case) as seen:
            read(root)
        if seen.error:
            assert isinstance(seen.error, Problems), case
            assert seen.error.exit_code == 65, case
            for problem in seen.error.problems:
                assert problem.where.startswith(("regions/", "plans/")), f"{case}: {problem}"
                codes.add(problem.code)
        (root / name).write_text(WHOLE[name])
    assert len(codes) >= 8, codes
    assert len(read(root)) == 2, "the unspoilt project is no longer read"


def test_s08_spoilt_inventories_are_reported_with_their_place(tmp_path: Path) -> None:
    spoilt_files(written(tmp_path, WHOLE), lambda name: name.startswith("regions/"), "inventory")


def test_s08_spoilt_pipelines_are_reported_with_their_place(tmp_path: Path) -> None:
    spoilt_files(written(tmp_path, WHOLE), lambda name: name.startswith("plans/"), "pipeline")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, ...]:
    return read(written(tmp_path_factory.mktemp("whole"), WHOLE))


def test_s08_spoilt_plans_are_refused_even_where_every_digest_is_right(plans: tuple[Plan, ...], tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save_plans(path, plans)
    assert load_plans(path)
    whole = json.loads(path.read_text())
    refused = 0
    for case, random in each("saved plan"):
        if random.random() < 0.6:
            body = spoilt(random, {key: whole[key] for key in ("format_version", "plans")})
            with suppress(TypeError, ValueError, KeyError, AttributeError, RecursionError, DataError):
                for entry in body["plans"]:
                    entry["digest"] = codec.decode(Plan, entry["plan"]).digest()
            with suppress(TypeError, ValueError, RecursionError):
                body["digest"] = digest(body)
            path.write_bytes(json.dumps(body).encode())
        else:
            path.write_bytes(spoilt_json(random, whole))
        with bounded(case) as seen:
            load_plans(path)
        if seen.error:
            refused += 1
            assert (seen.error.exit_code, str(path) in str(seen.error)) == (65, True), case
    assert refused > CASES * SHARE["saved plan"] // 250


def test_s08_spoilt_journals_are_not_acted_upon(tmp_path: Path) -> None:
    good = tmp_path / "good.db"
    journal = Journal(good, clock=lambda: 1.0)
    intent = journal.intent("eu", "web", "accept", {"plan": "d", "live": ""})
    journal.outcome(intent, "eu", "web", "done")
    journal.intent("us", "web", "promote", {"rollout": "web-1"})
    for seq in range(1, 20):
        journal.record_event(
            "eu", "web", Recorded("web-1", seq, 5.0, Entered("preparing") if seq % 2 else Progress(step="s", rows=5))
        )
    journal.fleet("web", [["eu"], ["us"]], {"yes": True})
    assert (len(journal.events("eu")), len(journal.open_intents())) == (19, 1)
    journal.close()
    whole = good.read_bytes()
    path = tmp_path / "j.db"
    for case, random in each("journal"):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(whole)
        if random.random() < 0.6:
            _forge(path, random)
        else:
            data = bytearray(whole)
            for _ in range(random.choice([1, 20, 400])):
                data[random.randrange(len(data))] = random.randrange(256)
            path.write_bytes(data[: random.choice([len(data), len(data) // 2, 100])])
        with bounded(case) as seen:
            damaged = Journal(path)
            try:
                damaged.entries()
                damaged.events("eu")
                damaged.open_intents()
            finally:
                damaged.close()
        if seen.error:
            assert (seen.error.exit_code, str(path) in str(seen.error)) == (65, True), f"{case}: {seen.error!r}"


def _forge(path: Path, random: Random) -> None:
    """A row changed by someone who knows how its hash is made."""
    with sqlite3.connect(path) as connection:
        columns = ("at", "kind", "region", "pipeline", "about", "body")
        rows = connection.execute(f"SELECT id, {', '.join(columns)} FROM entries").fetchall()
        id, *row = random.choice(rows)
        place = random.randrange(len(columns))
        row[place] = (
            spoilt_json(random, json.loads(row[5])).decode("utf-8", "replace")
            if place == 5
            else random.choice(["x", "", -1, 7, 2**60, "\x1b[2J"])
        )
        with suppress(sqlite3.Error):
            connection.execute(
                f"UPDATE entries SET {', '.join(f'{c} = ?' for c in columns)}, hash = ? WHERE id = ?",
                (*row, _hash(tuple(row)), id),
            )
    connection.close()


class _Deaf:
    """The way to an agent that does not listen."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...


class _Saying:
    """Reaches an agent that says these bytes, whatever it is asked."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def dial(self, *, start: bool) -> Link:
        reader = asyncio.StreamReader()
        link = Link(reader, _Deaf(), "eu")
        asyncio.get_running_loop().call_soon(reader.feed_data, self._data)
        asyncio.get_running_loop().call_soon(reader.feed_eof)
        return link

    async def survey(self, request: SurveyRequest) -> Surveyed:
        raise AssertionError("an agent listens")

    def save_tail(self, tail: bytes) -> str:
        return "a file"


async def test_s08_s10_spoilt_answers_change_nothing_and_name_their_region(
    plans: tuple[Plan, ...], tmp_path: Path
) -> None:
    region = next(region for region in load(written(tmp_path, WHOLE)).regions if region.name == "eu")
    status = {"status": codec.encode(_status()), "plan": codec.encode(plans[0]), "releases": []}
    answers: dict[str, Any] = {
        "survey": codec.encode(_live(region)),
        "state": {"type": "RegionState", **status},
        "accept": {"rollout": "web-1"},
        "promote": codec.encode(Promoted(release="r2", was="r1", by="ada", host="laptop", version=7)),
        "query": {"columns": [["a", "int"]], "rows": [[1]], "release": "r1", "truncated": False},
        "watch": {},
    }
    for method in set(answers) - {"watch"}:
        driver = RpcDriver(
            region, _Saying(json.dumps({"jsonrpc": "2.0", "id": 1, "result": answers[method]}).encode() + b"\n")
        )
        await _called(driver, method, plans[0])
        await driver.close()
    survey = {"live": answers["survey"], "state": status}
    assert isinstance(
        surveyed(SurveyRequest(region="eu", warehouse="/x", pipeline="web"), json.dumps(survey).encode()), Surveyed
    )
    refused = 0
    for case, random in each("answer"):
        method = random.choice(list(answers))
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": answers[method]}
        if random.random() < 0.2:
            data = {"type": "Conflict", "hint": "h", "code": "E_LOCK"}
            message = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no", "data": data}}
        event = {
            "jsonrpc": "2.0",
            "method": "event",
            "params": codec.encode(Recorded("web-1", 1, 5.0, Entered("preparing"))),
        }
        first, second = (message, spoilt(random, event)) if method == "watch" else (spoilt(random, message), event)
        text = json.dumps(first).encode() if random.random() < 0.8 else spoilt_json(random, message)
        text += b"\n" + (json.dumps(second).encode() + b"\n" if method == "watch" else b"")
        driver = RpcDriver(region, _Saying(text))
        with bounded(case) as seen:
            await _called(driver, method, plans[0])
        await driver.close()
        if seen.error:
            refused += 1
            # what it says may be an error of its own, read as such; an answer that is none is broken input
            assert "error" in message or isinstance(seen.error, Protocol | Unreachable), f"{case}: {seen.error!r}"
            if isinstance(seen.error, Protocol | Unreachable):
                assert seen.error.exit_code == (65 if isinstance(seen.error, Protocol) else 5), case
                assert "eu: " in str(seen.error), f"{case}: {seen.error}"
                assert len(str(seen.error)) < 1000, case
        with bounded(case):
            survey_report = surveyed(
                SurveyRequest(region="eu", warehouse="/x", pipeline="web"), spoilt_json(random, survey)
            )
            assert isinstance(survey_report, Surveyed) or (
                isinstance(survey_report, Protocol) and survey_report.exit_code == 65
            ), f"{case}: {survey_report!r}"
    assert refused > CASES * SHARE["answer"] // 250


def _status() -> Any:
    from console.model.status import Status

    return Status()


async def _called(driver: RpcDriver, method: str, plan: Plan) -> None:
    from console.drivers.protocol import Who

    who = Who("ada@laptop", "laptop")
    match method:
        case "survey":
            await driver.survey("web", [])
        case "state":
            await driver.state("web")
        case "accept":
            await driver.accept(plan, who)
        case "promote":
            await driver.promote("web", "web-1", "r1", who)
        case "query":
            await driver.query("web", "SELECT 1", [], {}, 1)
        case "watch":
            async for _ in driver.watch("web"):
                pass


def test_s08_spoilt_requests_of_a_console_are_refused_on_the_far_side() -> None:
    dial = remote.Request(
        do="dial",
        region="eu",
        warehouse="/srv/eu",
        pipeline="web",
        landing=("landing",),
        state=True,
        past="*",
        start=True,
        beat=15.0,
        config={"conf": {}},
    )
    profile = remote.Request(
        do="profile",
        region="eu",
        warehouse="/srv/eu",
        sample=Sample(table="landing", column="payload", time="ts", bytes=1_000_000, seconds=30.0),
    )
    passed = 0
    for whole in (dial, profile):
        see(codec.decode(remote.Request, codec.loads(codec.dumps(whole))))
    for case, random in each("request"):
        with bounded(case):
            request = codec.decode(
                remote.Request, codec.loads(spoilt_json(random, codec.encode(random.choice((dial, profile)))))
            )
            see(request)
            assert request.warehouse.removeprefix("file://").rstrip("/") == "/srv/eu", case
            assert request.sample is None or "/" not in request.sample.table, case
            passed += 1
    assert passed, "nothing reached the checks behind the form"


def see(request: remote.Request) -> None:
    """All that is looked at before a request is served."""
    remote._check_request(request, ["/srv/eu"])
    if request.do == "profile" or request.sample:
        remote._sample(request)


@pytest.mark.parametrize("number", range(6))
def test_s08_a_sample_through_the_program_ends_with_65_and_without_a_traceback(number: int, tmp_path: Path) -> None:
    random = Random(f"program {number}")
    names = [name for name in WHOLE if name.endswith((".yaml", ".sql"))]
    root = written(tmp_path, WHOLE)
    while True:
        name = random.choice(names)
        (root / name).write_bytes(spoilt_text(random, WHOLE[name]))
        try:
            read(root)
        except ConsoleError:
            break
        (root / name).write_text(WHOLE[name])
    done = subprocess.run(
        [sys.executable, "-m", "console.main", "plan", "--project", str(root)],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "CONSOLE_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
