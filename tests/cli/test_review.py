"""snapshot and check: a change judged where no region can be reached; and saved plans of which one region moved."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.model.schema import Column
from tests.cli.conftest import CHANGE, FILES, World

pytestmark = pytest.mark.slow


def git(root: Path, *words: str) -> None:
    user = ("-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *user, *words], cwd=root, check=True, capture_output=True)


def committed(world: World) -> None:
    git(world.root, "init", "-q", "-b", "main")
    git(world.root, "add", "-A")
    git(world.root, "commit", "-q", "-m", "live")


@pytest.fixture
def snapshot(deployed: World) -> Path:
    file = deployed.root.parent / "snapshot.json"
    done = deployed.call("snapshot", "--out", str(file))
    assert done.exit_code == 0, done.output
    for region in deployed.regions.values():
        region.drop_link()
    return file


def test_a_check_against_a_snapshot_plans_what_plan_would_and_reaches_no_region(
    deployed: World, snapshot: Path
) -> None:
    offline = deployed.call("check", "--against", str(snapshot))
    assert offline.exit_code == 0, offline.output
    assert deployed.call("plan").exit_code == 5
    for region in deployed.regions.values():
        region.heal()
    assert offline.stdout == deployed.call("plan").stdout
    assert deployed.call("check", "--against", str(snapshot), "--detailed-exitcode").exit_code == 2
    deployed.write(FILES)
    done = deployed.call("check", "--against", str(snapshot), "--detailed-exitcode")
    assert done.exit_code == 0
    assert "nothing to do" in done.stdout


def test_a_snapshot_holds_no_credential_person_or_host(deployed: World, snapshot: Path) -> None:
    text = snapshot.read_text()
    release = deployed.regions["us"].survey().releases[0]
    assert release.by
    assert release.by not in text
    assert release.host not in text.replace(str(deployed.root), "")
    from console.cli.commands.review.snapshots import picture
    from console.model.live import Live, TableStats

    stats = TableStats(
        name="landing", path="s3://AKIA:topsecret@bucket/landing", version=1, rows=0, bytes=0, files=0, columns=()
    )
    shown = json.dumps(
        picture("web", "console", {"us": Live(region="us", pipeline="web", release=None, stats=(stats,))}, {"us": ()})
    )
    assert "topsecret" not in shown
    assert "s3://bucket/landing" in shown


@pytest.mark.parametrize("damage", ["{", "[]", "{}", '{"format_version": 1}', '{"format_version": 2}'])
def test_what_is_no_snapshot_is_wrong_data(deployed: World, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(damage)
    assert deployed.call("check", "--against", str(file)).exit_code == 65
    assert deployed.call("check", "--against", str(tmp_path / "gone.json")).exit_code == 65


def test_a_changed_snapshot_is_refused(deployed: World, snapshot: Path) -> None:
    snapshot.write_text(snapshot.read_text().replace("1099511627776", "1"))
    result = deployed.call("check", "--against", str(snapshot))
    assert result.exit_code == 65
    assert "changed after it was made" in result.stderr


def test_a_snapshot_that_is_too_old_is_a_conflict(deployed: World, snapshot: Path) -> None:
    deployed.write({"regions/ap.yaml": "name: ap\nwarehouse: w/ap\n"})
    result = deployed.call("check", "--against", str(snapshot))
    assert result.exit_code == 4
    assert "knows no region ap" in result.stderr
    (deployed.root / "regions/ap.yaml").unlink()
    deployed.write({"plans/web/tables/clicks.yaml": FILES["plans/web/tables/landing.yaml"]})
    result = deployed.call("check", "--against", str(snapshot))
    assert result.exit_code == 4
    assert "clicks" in result.stderr


def test_files_alone_are_judged_without_any_base(deployed: World) -> None:
    assert deployed.call("check").exit_code == 0
    deployed.write({"plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\nSELECT nope FROM landing\n"})
    result = deployed.call("check")
    assert result.exit_code == 65
    assert "plans/web/materializations/parse.sql:4:" in result.stderr


def test_a_check_against_a_commit_plans_the_files_as_if_that_commit_were_live(world: World) -> None:
    committed(world)
    same = world.call("check", "--from-git", "main", "--detailed-exitcode")
    assert same.exit_code == 0, same.output
    world.write(CHANGE)
    result = world.call("check", "--from-git", "HEAD", "--output", "json")
    assert result.exit_code == 0, result.output
    (plan, _) = json.loads(result.stdout)["plans"]
    assert {node["name"]: node["action"] for node in plan["nodes"] if node["action"] != "keep"} == {
        "requests": "replay"
    }
    for ref in ("nowhere", "--output=x"):
        assert world.call("check", "--from-git", ref).exit_code == 64
    assert not world.regions, "no region was reached"


def test_with_both_the_commit_says_what_changes_and_the_snapshot_what_it_costs(deployed: World, snapshot: Path) -> None:
    deployed.write(FILES)
    committed(deployed)
    deployed.write(CHANGE)
    result = deployed.call("check", "--from-git", "main", "--against", str(snapshot), "--output", "json")
    assert result.exit_code == 0, result.output
    assert {plan["price"]["rows"] for plan in json.loads(result.stdout)["plans"]} == {110}


def test_a_commit_whose_files_were_wrong_is_named(world: World) -> None:
    world.write({"plans/web/sinks/dump.sql": "/*\npath: exports/dump\n*/\nSELECT nope FROM requests\n"})
    committed(world)
    world.write(FILES)
    result = world.call("check", "--from-git", "main")
    assert result.exit_code == 65
    assert "at main: plans/web/sinks/dump.sql" in result.stderr


# -- SARIF 2.1.0: the parts of its schema that this log uses, from the specification's own table of properties

TEXT: dict[str, Any] = {"type": str}
PLACE = {
    "artifactLocation": {"uri": TEXT, "uriBaseId": TEXT},
    "region": {"startLine": {"type": int, "least": 1}, "startColumn": {"type": int, "least": 1}},
}
RESULT = {
    "ruleId": TEXT, "ruleIndex": {"type": int, "least": 0}, "level": {"one": ("none", "note", "warning", "error")},
    "message": {"text": TEXT}, "locations": [{"physicalLocation": PLACE}], "partialFingerprints": {"*": TEXT},
    "properties": {"regions": [TEXT]},
}  # fmt: skip
DRIVER = {
    "name": TEXT,
    "version": TEXT,
    "semanticVersion": TEXT,
    "rules": [{"id": TEXT, "shortDescription": {"text": TEXT}}],
}
LOG = {
    "$schema": TEXT, "version": {"one": ("2.1.0",)},
    "runs": [{"tool": {"driver": DRIVER}, "columnKind": {"one": ("utf16CodeUnits", "unicodeCodePoints")}, "results": [RESULT]}],
}  # fmt: skip
REQUIRED = {"version", "runs", "tool", "driver", "name", "message", "id"}


def fits(shape: Any, value: Any, path: str = "$") -> None:
    """Every property is one that the specification knows, and of its kind; required ones are there."""
    if isinstance(shape, list):
        assert isinstance(value, list), path
        for i, item in enumerate(value):
            fits(shape[0], item, f"{path}[{i}]")
    elif "type" in shape and isinstance(shape["type"], type):
        assert type(value) is shape["type"], path
        assert value != "", path
        assert value >= shape.get("least", value), path
    elif "one" in shape and isinstance(shape["one"], tuple):
        assert value in shape["one"], path
    else:
        assert isinstance(value, dict), path
        for key, item in value.items():
            fits(shape.get("*") or shape[key], item, f"{path}.{key}")
        assert REQUIRED & set(shape) <= set(value), path


def sarif(world: World, *words: str, code: int) -> list[dict[str, Any]]:
    result = world.call("check", "--output", "sarif", *words)
    assert result.exit_code == code, result.output
    log = json.loads(result.stdout)
    fits(LOG, log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in run["results"])
    marks = [r["partialFingerprints"]["consoleFinding/v1"] for r in run["results"]]
    assert len(set(marks)) == len(marks)
    actual: list[dict[str, Any]] = run["results"]
    return actual


def test_sarif_names_each_mistake_with_its_file_and_line(world: World) -> None:
    wrong = {
        "plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\nSELECT id, ts,\n  to_date(tss) AS day FROM landing\n",
        "regions/eu.yaml": "name: eu\nwarehouse: w/eu\nwafe: 2\n",
    }
    world.write(wrong)
    (yaml,) = sarif(world, code=65)
    assert yaml["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "regions/eu.yaml"
    assert yaml["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    world.write({"regions/eu.yaml": FILES["regions/eu.yaml"]})
    (sql,) = sarif(world, code=65)
    assert (sql["ruleId"], sql["level"]) == ("S108", "error")
    place = sql["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "plans/web/materializations/parse.sql"
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (5, 11)


def test_sarif_of_a_project_below_its_repository_names_files_from_the_repositorys_root(world: World) -> None:
    git(world.root.parent, "init", "-q", "-b", "main")
    world.write({"regions/eu.yaml": "name: eu\nwarehouse: w/eu\nwafe: 2\n"})
    (result,) = sarif(world, code=65)
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "project/regions/eu.yaml"


def test_sarif_tells_each_change_once_with_the_regions_that_make_it(deployed: World, snapshot: Path) -> None:
    result = sarif(deployed, "--against", str(snapshot), code=0)
    (change,) = [r for r in result if r["ruleId"] == "plan-replay"]
    assert change["level"] == "note"
    assert change["properties"]["regions"] == ["us", "eu"]
    place = change["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "plans/web/materializations/parse.sql"


def test_markdown_is_a_comment_that_foreign_names_cannot_break(deployed: World, snapshot: Path) -> None:
    evil = "see @everyone | <img src=x> `x` [a](b)"
    deployed.write(
        {
            "plans/web/endpoints/newest.sql": FILES["plans/web/endpoints/newest.sql"].replace(
                "parameters:", f"owner: {json.dumps(evil)}\nparameters:"
            ).replace("ORDER BY ts DESC", "ORDER BY ts"),
        }
    )  # fmt: skip
    result = deployed.call("check", "--against", str(snapshot), "--output", "markdown")
    assert result.exit_code == 0, result.output
    text, _, folded = result.stdout.partition("<details>")
    assert text.startswith("<!-- console check -->\n")
    assert "| `-/+` | requests (table) | replay |" in text
    assert "newest (endpoint)" in text
    assert not re.search(r"(?<!\\)[<`\[]img|@everyone|(?<!\\)<img", text)
    assert "\n```\n" in folded
    rows = [line for line in text.splitlines() if line.startswith("|") and "newest" in line]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (4, 5) for row in rows)


def test_markdown_of_wrong_files_lists_them_and_exits_65(world: World) -> None:
    world.write({"plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\nSELECT nope FROM landing\n"})
    result = world.call("check", "--output", "markdown")
    assert result.exit_code == 65
    assert "plans/web/materializations/parse.sql:4:8" in result.stdout


def test_forms_that_only_check_speaks_are_refused_elsewhere(world: World) -> None:
    for words in (["plan"], ["status"], ["apply", "--yes"]):
        result = world.call(*words, "--output", "sarif")
        assert result.exit_code == 64
        assert "does not support sarif" in result.stderr


# -- saved plans of which one region moved


def moved(world: World, name: str) -> None:
    """Somebody alters the landing table of one region by hand."""
    stats = world.regions[name].disk.stats["landing"]
    from dataclasses import replace

    columns = (*stats.columns, Column(name="extra", type="string"))
    world.regions[name].disk.stats["landing"] = replace(stats, columns=columns)


def test_one_region_that_moved_is_refused_alone_and_the_others_are_carried(deployed: World) -> None:
    file = deployed.root.parent / "change.json"
    assert deployed.call("plan", "--out", str(file)).exit_code == 0
    moved(deployed, "eu")
    result = deployed.call("apply", str(file), "--yes")
    assert result.exit_code == 4, result.output
    assert "eu: the saved plan is stale: table landing: column extra nothing → string" in result.stderr
    assert "re-plan just this one: console plan --regions eu --out" in result.stderr
    assert deployed.regions["us"].disk.live == "r2"
    assert deployed.regions["eu"].disk.live == "r1"
    again = re.findall(r"console (plan --regions eu --out (\S+)) &&", result.stderr)[0]
    assert deployed.call(*again[0].split()).exit_code == 0
    assert deployed.call("apply", again[1], "--yes").exit_code == 0
    assert deployed.regions["eu"].disk.live == "r2"


def test_a_wave_behind_a_region_that_moved_does_not_start(deployed: World) -> None:
    file = deployed.root.parent / "change.json"
    deployed.call("plan", "--out", str(file))
    moved(deployed, "us")
    assert deployed.call("apply", str(file), "--yes").exit_code == 4
    assert [region.disk.live for region in deployed.regions.values()] == ["r1", "r1"]


def test_a_dry_run_of_a_stale_plan_shows_it_and_says_so(deployed: World) -> None:
    file = deployed.root.parent / "change.json"
    deployed.call("plan", "--out", str(file))
    moved(deployed, "eu")
    result = deployed.call("apply", str(file), "--dry-run")
    assert result.exit_code == 4
    assert "eu: the saved plan is stale" in result.stderr
    assert "Plan: 2 regions" in result.stdout


def test_a_region_that_left_the_inventory_makes_the_list_stale(deployed: World) -> None:
    file = deployed.root.parent / "change.json"
    deployed.call("plan", "--out", str(file))
    (deployed.root / "regions/eu.yaml").unlink()
    result = deployed.call("apply", str(file), "--yes")
    assert result.exit_code == 4
    assert "no longer in the inventory: eu" in result.stderr
    assert deployed.call("apply", str(file), "--yes", "--regions", "us").exit_code == 0


# -- profile


def landed(world: World) -> None:
    stamps = [datetime(2026, 11, 1 + i // 10, tzinfo=UTC) for i in range(40)]
    texts = [json.dumps({"agent": "x", "ip": "y"} | ({"zone": "z"} if i >= 20 else {})) for i in range(40)]
    rows = pa.table({"id": ["a"] * 40, "ts": pa.array(stamps, pa.timestamp("us", "UTC")), "payload": texts})
    write_deltalake(str(world.root / "w" / "us" / "landing"), rows)


def test_profile_lists_the_keys_since_when_and_parsed_by_nobody(deployed: World) -> None:
    landed(deployed)
    result = deployed.call("profile", "landing", "--region", "us")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["key", "rows", "first", "seen", "parsed", "by"],
        ["agent", "100.0%", "2026-11-01", "parse"],
        ["ip", "100.0%", "2026-11-01", "nobody"],
        ["zone", "50.0%", "2026-11-03", "nobody"],
    ]
    data = json.loads(deployed.call("profile", "landing", "--region", "us", "--unparsed", "--output", "json").stdout)
    assert [(key["key"], key["sure"]) for key in data["keys"]] == [("ip", True), ("zone", True)]


def test_profile_of_what_is_not_there_says_what_is(deployed: World) -> None:
    assert deployed.call("profile", "landing").exit_code == 64
    wrong = deployed.call("profile", "lending", "--region", "us")
    assert wrong.exit_code == 64
    assert "did you mean landing?" in wrong.stderr
    assert deployed.call("profile", "landing", "--region", "us").exit_code == 1, "the region has no such table yet"
    landed(deployed)
    assert deployed.call("profile", "landing", "--region", "us", "--column", "ts").exit_code == 65


def test_a_key_without_effect_is_a_warning_in_every_form_of_check(world: World) -> None:
    world.write({**FILES, "regions/eu.yaml": FILES["regions/eu.yaml"] + "catalog: {publish: main.web}\n"})
    text = world.call("check")
    assert text.exit_code == 0
    assert "warning P050: `catalog` has no effect" in text.stdout
    assert "regions/eu.yaml:5:1" in text.stdout
    (problem,) = json.loads(world.call("check", "--output", "json").stdout)["problems"]
    assert (problem["code"], problem["severity"]) == ("P050", "warn")
    assert "**The files are wrong" not in (comment := world.call("check", "--output", "markdown").stdout)
    assert "P050" in comment
    (output,) = json.loads(world.call("check", "--output", "sarif").stdout)["runs"][0]["results"]
    assert (output["ruleId"], output["level"]) == ("P050", "warning")


def test_a_plan_with_nothing_to_do_still_warns_of_a_key_without_effect(deployed: World) -> None:
    deployed.write({**FILES, "regions/eu.yaml": FILES["regions/eu.yaml"] + "catalog: {publish: main.web}\n"})
    done = deployed.call("plan")
    assert "nothing to do" in done.stdout
    assert "warning P050: `catalog` has no effect" in done.stdout


def test_check_notes_what_parses_a_text_again_and_again_and_is_content(deployed: World) -> None:
    place = deployed.root / "plans/web/materializations/parse.sql"
    calls = ", ".join(f"get_json_object(payload, '$.{key}')" for key in "abc")
    place.write_text(
        f"/* into: requests */\nSELECT id, ts, to_date(ts) AS day, concat({calls}) AS agent FROM landing\n"
    )
    (deployed.root / "plans/web/tables/requests.yaml").write_text(CHANGE["plans/web/tables/requests.yaml"])
    checked = deployed.call("check")
    assert (checked.exit_code, "note C147: parse parses `payload` 3 times" in checked.stdout) == (0, True), (
        checked.output
    )
