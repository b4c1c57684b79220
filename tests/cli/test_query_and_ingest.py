"""query, endpoint, copy, sink, ingest and follow, against regions in memory."""

import json
import os
import re
import threading

import pytest

from console.drivers.fake import FakeDriver
from console.errors import Unreachable
from tests.cli.conftest import World


@pytest.mark.slow
def test_a_query_is_checked_compiled_and_answered_as_objects(deployed: World) -> None:
    result = deployed.call("query", "--region", "us", "SELECT id FROM requests", "--output", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["format_version"] == 1
    assert answer["columns"] == [{"name": "table", "type": "string"}, {"name": "rows", "type": "bigint"}]
    assert all(set(row) == {"table", "rows"} for row in answer["rows"])


@pytest.mark.slow
def test_sql_that_is_refused_exits_65_with_the_nearest_name(deployed: World) -> None:
    for sql, item in (
        ("SELECT id FROM reqests", "requests"),
        ("SELECT reflect('a','b')", "reflect"),
        ("DROP TABLE x", ""),
    ):
        result = deployed.call("query", "--region", "us", sql)
        assert result.exit_code == 65, (sql, result.output)
        assert item in result.stderr


@pytest.mark.slow
def test_an_endpoint_takes_typed_parameters_and_defaults(deployed: World) -> None:
    assert deployed.call("endpoint", "newest", "--region", "us", "--param", "day=2026-11-07").exit_code == 0
    for words in (["--param", "day=2026-11-77"], [], ["--param", "dya=1"], ["--param", "day"]):
        assert deployed.call("endpoint", "newest", "--region", "us", *words).exit_code == 64
    unknown = deployed.call("endpoint", "newst", "--region", "us")
    assert unknown.exit_code == 64
    assert "did you mean newest?" in unknown.stderr


@pytest.mark.slow
def test_a_call_is_recorded_once_behind_the_others_and_the_next_plan_would_run_it(deployed: World) -> None:
    file = deployed.root / "plans/web/endpoints/newest.calls.yaml"
    words = ("endpoint", "newest", "--region", "us", "--record", "--param")
    assert deployed.call(*words, "day=2026-11-77").exit_code == 64
    assert not file.exists()
    first = deployed.call(*words, "day=2026-11-07")
    assert (first.exit_code, "recorded in plans/web/endpoints/newest.calls.yaml" in first.stderr) == (0, True)
    file.write_text("# asked at night\n" + file.read_text())
    file.chmod(0o640)
    assert deployed.call(*words, "day=2026-11-08", "--param", "most=3").exit_code == 0
    again = deployed.call(*words, "day=2026-11-07")
    assert (again.exit_code, "recorded already, as `call 1`" in again.stderr) == (0, True)
    assert file.read_text() == (
        "# asked at night\ncalls:\n  - {parameters: {day: 2026-11-07}}\n  - {parameters: {day: 2026-11-08, most: 3}}\n"
    )
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []
    text = (deployed.root / "plans/web/endpoints/newest.sql").read_text()
    deployed.write({"plans/web/endpoints/newest.sql": text.replace("SELECT id, ts", "SELECT id")})
    assert "2 recorded calls of newest" in deployed.call("plan", "--regions", "us", "--explain").stdout
    file.write_text("calls: [{parameters: {day: 2026-11-07}}]\n")
    refused = deployed.call(*words, "day=2026-11-09")
    assert (refused.exit_code, "cannot be appended to the others" in refused.stderr) == (65, True)


def test_a_region_without_a_release_has_nothing_to_ask(world: World) -> None:
    result = world.call("query", "--region", "us", "SELECT 1")
    assert result.exit_code == 1
    assert "nothing is live yet" in result.stderr


@pytest.mark.slow
def test_one_region_only(deployed: World) -> None:
    assert deployed.call("query", "SELECT 1").exit_code == 64
    assert deployed.call("query", "--regions", "us,eu", "SELECT 1").exit_code == 64


@pytest.mark.slow
def test_a_sink_runs_by_name(deployed: World) -> None:
    assert deployed.call("sink", "dump", "--region", "us").stdout.startswith("dump: 110 rows → ")
    assert deployed.call("sink", "dmup", "--region", "us").exit_code == 64
    assert deployed.call("copy", "dump", "--region", "us").exit_code == 64


DAILY = {"plans/web/copies/daily.sql": "/*\ninto: daily_totals\nmode: append\n*/\nSELECT id, day FROM requests\n"}


def forgets(driver: FakeDriver, call: str) -> None:
    raise Unreachable(f"{driver.region.name}: the connection was lost before the answer to {call}")


@pytest.mark.slow
def test_a_copy_whose_answer_was_lost_says_how_to_ask_again_and_is_done_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(DAILY)
    assert world.call("apply", "--yes", "--quiet").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(FakeDriver, "_leave", forgets)
        lost = world.call("copy", "daily", "--region", "us")
    assert lost.exit_code == 5
    match = re.search(r"console (copy daily --region us --run \w{16})\n", lost.stderr)
    assert match, lost.stderr
    (run,) = world.regions["us"].copied
    again = world.call(*match[1].split())
    assert (again.exit_code, again.stdout) == (0, f"daily: run {run[1]} is there already, nothing added\n")
    assert world.regions["us"].copied == {run}
    data = json.loads(world.call("copy", "daily", "--region", "us", "--run", "ci-77", "--output", "json").stdout)
    assert (data["run"], data["rows"], data["already"]) == ("ci-77", 110, False)


def test_what_is_no_id_of_a_run_is_a_usage_error(world: World) -> None:
    for run in ("", "a b", "a'b", "ä", "x" * 65, "a\n"):
        refused = world.call("copy", "daily", "--region", "us", "--run", run)
        assert (refused.exit_code, "is not a valid id for a run" in refused.stderr) == (64, True), run


@pytest.mark.slow
def test_a_file_is_ingested_once(deployed: World) -> None:
    data = b'{"id": "a"}\n\n{"id": "b"}\n'
    file = deployed.root / "events.ndjson"
    file.write_bytes(data)
    before = deployed.regions["us"].disk.stats["landing"].rows
    first = deployed.call("ingest", str(file), "--region", "us")
    assert (first.exit_code, first.stdout) == (0, "landing: 2 rows added\n")
    again = deployed.call("ingest", "-", "--region", "us", input=data)
    assert (again.exit_code, again.stdout) == (0, "landing: already there, nothing added (2 lines)\n")
    assert deployed.regions["us"].disk.stats["landing"].rows == before + 2


@pytest.mark.slow
def test_a_named_pipe_is_kept_aside_as_stdin_is_and_known_by_its_first_event(deployed: World) -> None:
    pipe = deployed.root / "63"  # as the shell names what stands in <(…)
    os.mkfifo(pipe)
    for data in (b'{"id": "a"}\n{"id": "b"}\n', b'{"id": "c"}\n'):
        writing = threading.Thread(target=pipe.write_bytes, args=(data,))
        writing.start()
        done = deployed.call("ingest", str(pipe), "--region", "us")
        writing.join()
        assert done.exit_code == 0, done.output
    assert deployed.regions["us"].loads.head("63") is None


@pytest.mark.slow
def test_nothing_of_a_wrong_file_is_sent(deployed: World) -> None:
    result = deployed.call("ingest", "-", "--region", "us", input='{"id": 1}\n[]\n')
    assert result.exit_code == 65
    assert "stdin:2: no JSON object" in result.stderr
    assert not deployed.regions["us"].ingested


@pytest.mark.slow
def test_only_a_managed_landing_table_takes_events(deployed: World) -> None:
    assert deployed.call("ingest", "-", "--region", "us", "--table", "requests", input="{}").exit_code == 64


def test_follow_becomes_the_agent_with_the_regions_settings(world: World) -> None:
    assert world.call("follow", "--region", "us").exit_code == 0
    argv, stdin = world.executed[0]
    assert argv[argv.index("console.agent") :] == [
        "console.agent", "serve", "--warehouse", str(world.root.resolve() / "w/us"), "--config", "-",
    ]  # fmt: skip
    assert json.loads(stdin)["region"] == "us"


def test_follow_needs_no_project_where_the_region_keeps_its_settings(world: World) -> None:
    place = world.root / "w"
    kept = place / "_console" / "agent.json"
    assert world.call("follow", "--warehouse", str(place)).exit_code == 64
    kept.parent.mkdir(parents=True)
    kept.write_text('{"region": "us", "master": "local[1]"}')
    assert world.call("follow", "--warehouse", str(place)).exit_code == 0
    assert json.loads(world.executed[0][1]) == {"region": "us", "master": "local[1]"}


@pytest.mark.slow
def test_follow_stop_ends_the_agent(deployed: World) -> None:
    assert deployed.regions["us"].agent.running
    assert deployed.call("follow", "--stop", "--region", "us").exit_code == 0
    assert not deployed.regions["us"].agent.running
