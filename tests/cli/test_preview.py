"""`console preview`, and `--release` on what reads, against regions in memory."""

import json

import pytest

from tests.cli.conftest import FILES, World

WIDER = {
    "plans/web/tables/requests.yaml": FILES["plans/web/tables/requests.yaml"].replace("ts: timestamp", "ts: timestamp, n: int"),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT id, ts, CAST(id AS INT) AS n, to_date(ts) AS day FROM landing\n"
    ),
}  # fmt: skip


@pytest.fixture
def changed(deployed: World) -> World:
    deployed.write(WIDER)
    return deployed


@pytest.mark.slow
def test_a_preview_is_built_listed_read_and_dropped(changed: World) -> None:
    built = changed.call("preview", "--region", "us", "--name", "wider", "--days", "2", "--expires", "12h")
    assert built.exit_code == 0, built.output
    head, row = built.stdout.splitlines()[0], next(line for line in built.stdout.splitlines() if "wider" in line)
    assert "dropped in" in head
    assert "ready" in row
    assert "requests" in row

    listed = json.loads(changed.call("preview", "--region", "us", "--list", "--output", "json").stdout)
    assert [(each["name"], each["state"], each["days"], each["live"]) for each in listed["previews"]] == [
        ("wider", "ready", 2, "r1")
    ]
    status = changed.call("status", "--region", "us")
    assert "preview wider: ready, 2 days, beside r1; dropped in" in status.stdout
    data = json.loads(changed.call("status", "--region", "us", "--output", "json").stdout)
    assert [each["name"] for each in data["regions"][0]["previews"]] == ["wider"]

    dropped = changed.call("preview", "--region", "us", "--drop", "wider", "--output", "json")
    assert json.loads(dropped.stdout)["preview"] == "wider"
    assert len(json.loads(dropped.stdout)["dropped"]) == 1
    assert "no previews" in changed.call("preview", "--region", "us", "--list").stderr


@pytest.mark.slow
def test_a_first_release_is_previewed_before_anything_is_live(world: World) -> None:
    built = world.call("preview", "--region", "us", "--name", "first")
    assert built.exit_code == 0, built.output
    assert "building first beside no release" in built.stderr
    assert "preview first: ready, 1 day, beside no release; dropped in" in world.call("status", "--region", "us").stdout
    asked = world.call("query", "--region", "us", "--release", "first", "SELECT day FROM requests")
    assert asked.exit_code == 0, asked.output
    refused = world.call("query", "--region", "us", "SELECT day FROM requests")
    assert "nothing is live yet" in refused.stderr


@pytest.mark.slow
def test_live_rows_flow_only_into_one_that_asks_for_them(changed: World) -> None:
    for words, listed, told in (
        ([], "no", "ready, 1 day, beside r1"),
        (["--live"], "yes", "ready, 1 day and live rows, beside r1"),
    ):
        built = changed.call("preview", "--region", "us", "--name", "wider", *words)
        assert built.exit_code == 0, built.output
        head, row = (line.split("  ") for line in built.stdout.splitlines())
        shown = dict(zip(filter(None, map(str.strip, head)), filter(None, map(str.strip, row)), strict=True))
        assert shown["live rows"] == listed
        assert f"preview wider: {told}" in changed.call("status", "--region", "us").stdout


@pytest.mark.slow
def test_the_regions_policy_says_when_a_preview_expires_unless_the_command_does(changed: World) -> None:
    changed.write({"regions/us.yaml": f"{FILES['regions/us.yaml']}policy: {{preview_expires: 6h}}\n"})
    for words, hours in ((), 6), (("--expires", "12h"), 12):
        built = changed.call("preview", "--region", "us", "--output", "json", *words)
        (each,) = json.loads(built.stdout)["previews"]
        assert each["expires"] - each["at"] == hours * 3600
    changed.write({"regions/us.yaml": f"{FILES['regions/us.yaml']}policy: {{preview_expires: 40d}}\n"})
    refused = changed.call("preview", "--region", "us")
    assert (refused.exit_code, "between a minute and 30d" in refused.output) == (65, True), refused.output


@pytest.mark.slow
def test_a_query_of_a_preview_is_checked_against_its_own_tables(changed: World) -> None:
    changed.call("preview", "--region", "us", "--name", "wider")
    sql = ("query", "--region", "us", "SELECT n FROM requests")
    live = changed.call(*sql)
    assert live.exit_code == 65  # the live table has no such column
    assert "n" in live.stderr
    answer = changed.call(*sql, "--release", "wider", "--output", "json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["release"] == "wider"
    point = changed.call(
        "endpoint", "newest", "--region", "us", "--param", "day=2026-11-07", "--release", "wider", "-v"
    )
    assert "release wider" in point.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["query", "SELECT id FROM requests", "--release", "wide"],
        ["endpoint", "newest", "--param", "day=2026-11-07", "--release", "wide"],
        ["copy", "daily", "--release", "wide"],
        ["preview", "--drop", "wide"],
    ],
)
def test_a_name_that_no_preview_has_is_refused_with_the_way_to_the_others(changed: World, words: list[str]) -> None:
    refused = changed.call(*words, "--region", "us")
    assert refused.exit_code == 65
    assert "no preview 'wide'" in refused.stderr
    assert "console preview --list" in refused.stderr


@pytest.mark.slow
def test_nothing_is_built_where_nothing_changes_or_the_plan_is_refused(deployed: World) -> None:
    deployed.call("apply", "--yes", "--quiet")
    idle = deployed.call("preview", "--region", "us")
    assert idle.exit_code == 0
    assert "nothing to preview" in idle.stderr
    deployed.write({"plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\nSELECT nothing FROM landing\n"})
    assert deployed.call("preview", "--region", "us").exit_code == 65
    assert deployed.regions["us"].sandboxes == {}


@pytest.mark.parametrize(
    "words",
    [
        ["--days", "0"],
        *(
            pytest.param(words, marks=pytest.mark.slow)
            for words in (
                ["--expires", "3 weeks"],
                ["--expires", "31d"],
                ["--list", "--drop", "wider"],
                ["--regions", "us,eu"],
            )
        ),
    ],
)
def test_what_is_no_preview_is_refused_before_a_region_is_asked(changed: World, words: list[str]) -> None:
    region = [] if "--regions" in words else ["--region", "us"]
    assert changed.call("preview", *region, *words).exit_code == 64


@pytest.mark.slow
def test_a_name_that_could_be_a_release_is_refused(changed: World) -> None:
    refused = changed.call("preview", "--region", "us", "--name", "r7")
    assert refused.exit_code == 65
    assert "'r7' cannot be the name of a preview" in refused.stderr


@pytest.mark.slow
def test_readonly_lets_previews_be_listed(changed: World) -> None:
    assert changed.call("--readonly", "preview", "--region", "us", "--list").exit_code == 0
