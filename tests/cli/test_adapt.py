"""`console adapt` puts an adapter in front of a foreign landing table, and the plan moves no row below it."""

import json

import pytest

from cli.conftest import FILES, World

FOREIGN = {
    "plans/web/tables/landing.yaml": FILES["plans/web/tables/landing.yaml"].replace(
        "managed: true\n", "retention: 30d\n"
    ),
    "plans/web/endpoints/raw.sql": "SELECT landing.id FROM landing\n",
    "plans/web/endpoints/joined.sql": "SELECT r.id FROM requests AS r JOIN landing USING (id)\n",
}


@pytest.fixture
def foreign(world: World) -> World:
    world.write(FOREIGN)
    return world


@pytest.mark.slow
def test_it_writes_the_adapter_and_has_what_is_driven_by_the_table_read_it(foreign: World) -> None:
    done = foreign.call("adapt", "landing", "--as", "events")
    assert done.exit_code == 0, done.output
    assert "plans/web/endpoints/joined.sql: it joins landing" in done.stderr
    text = {
        name: (foreign.root / "plans/web" / name).read_text() for name in ("tables/events.yaml", "endpoints/raw.sql")
    }
    assert "source: landing\n" in text["tables/events.yaml"]
    assert "retention: 30d\n" in text["tables/events.yaml"]
    assert text["endpoints/raw.sql"] == "SELECT landing.id FROM events AS landing\n"
    parse = (foreign.root / "plans/web/materializations/parse.sql").read_text()
    assert parse == FILES["plans/web/materializations/parse.sql"].replace("FROM landing", "FROM events AS landing")
    assert foreign.call("check").exit_code == 0
    again = foreign.call("adapt", "landing", "--as", "events")
    assert (again.exit_code, "web has `events` already" in again.stderr) == (64, True)


def test_a_dry_run_writes_nothing(foreign: World) -> None:
    shown = foreign.call("adapt", "landing", "--as", "events", "--dry-run", "--output", "json")
    edited = json.loads(shown.stdout)["edited"]
    assert edited[0] == "plans/web/tables/events.yaml"
    assert not (foreign.root / edited[0]).exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("lending", "--as", "events"), "'lending' is not a landing table of web"),
        (("requests", "--as", "events"), "'requests' is not a landing table of web"),
        (("landing", "--as", "requests"), "web has `requests` already"),
        (("landing", "--as", "No Name"), "is not a valid name"),
    ],
)
def test_what_cannot_be_adapted_is_reported(foreign: World, words: tuple[str, ...], says: str) -> None:
    done = foreign.call("adapt", *words)
    assert (done.exit_code, says in done.stderr) == (64, True), done.stderr


def test_a_managed_table_needs_none(world: World) -> None:
    done = world.call("adapt", "landing", "--as", "events")
    assert (done.exit_code, "is managed, and needs no adapter" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_day_is_moved_to_what_the_files_say_in_each_region(deployed: World) -> None:
    table = FILES["plans/web/tables/landing.yaml"]
    deployed.write({**FILES, "plans/web/tables/landing.yaml": table + "accepts_until: 2026-12-24\n"})
    shown = deployed.call("plan")
    assert "until 2026-12-24" in shown.stdout
    assert deployed.call("plan", "--detailed-exitcode", "--region", "us").exit_code == 0
    moved = deployed.call("accept-until", "--region", "us")
    assert (moved.exit_code, moved.stdout) == (0, "us: landing until 2026-12-24\n"), moved.output
    again = deployed.call("accept-until", "--region", "us", "--output", "json")
    assert json.loads(again.stdout)["regions"] == [{"region": "us", "days": {}}]
    assert "C134" not in deployed.call("plan", "--region", "us", "--output", "json").stdout
