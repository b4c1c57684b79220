"""A saved plan is read as it was written, or refused."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.errors import DataError, Problem
from console.model.live import Feed, Release, TableState, Version
from console.model.pipeline import Override, digest
from console.model.plan import NodeChange, Plan, Price
from console.model.schema import Column, Table
from console.model.step import Backfill, CatchUp, Comparison, CreateTable, Pair, Promote, Validate
from console.project.saved import load_plans, save_plans


def plan(region: str) -> Plan:
    columns = (Column(name="ts", type="timestamp"), Column(name="ünï`", type="string", default="'\\''"))
    table = Table(name="requests", kind="append", columns=columns, time="ts", retention_days=30)
    state = TableState(
        table=table,
        version=Version(content="c" * 64, path="", columns=columns),
        read="SELECT * FROM stored",
        rows="r" * 64,
        values={"ts": "f"},
    )
    release = Release(
        id="",
        pipeline="web",
        digest="d" * 64,
        tables=(state,),
        feeds=(Feed(materialization="parse", source="landing", target="requests", sql="SELECT 1"),),
    )
    steps = (
        CreateTable("requests"),
        Backfill(
            materialization="parse",
            source="landing",
            target="requests",
            route="replay",
            sql="SELECT 1",
            time="ts",
            rows=1_500_000,
            bytes=2**40,
            days=14,
            batches=7,
        ),
        CatchUp("parse", "landing", "requests", "fence"),
        Validate((Comparison(table="requests", pairs=(Pair("ts", "ts"),), left_out=(("x", "new"),), time="ts"),)),
        Promote(),
    )
    node = NodeChange(
        kind="table",
        name="requests",
        action="replay",
        why="why: \u202e",
        price=Price(days=14, rows=1_500_000, bytes=2**40, batches=7, seconds=12.5),
    )
    return Plan(
        format_version=1, tool="0.1.0", pipeline="web", region=region, desired="d" * 64, live="r1", content="e" * 64, nodes=(node,), steps=steps, release=release, problems=(Problem(code="C101", message="short", where="f:1:1"),),
        price=Price(days=14, rows=1, bytes=2, batches=3, seconds=4.5), everything=Price(), overrides=(Override("tables.landing.retention", "30d", "3d"),), rows_limit=5,
    )  # fmt: skip


PLANS = (plan("eu"), plan("us"))


def test_what_is_saved_is_loaded_and_its_owner_alone_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "saved" / "p.json"
    old = os.umask(0)
    try:
        save_plans(path, PLANS[:1])
        save_plans(path, PLANS)
    finally:
        os.umask(old)
    assert load_plans(path) == PLANS
    assert [loaded.digest() for loaded in load_plans(path)] == [given.digest() for given in PLANS]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["p.json"]
    save_plans(path, ())
    assert load_plans(path) == ()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "p.json"
    save_plans(path, PLANS)
    return path.read_bytes()


@pytest.mark.slow
@given(st.floats(0, 1), st.sampled_from(["cut", "flip", "insert"]), st.integers(1, 255))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_or_cut_file_is_refused(whole: bytes, tmp_path: Path, at: float, how: str, by: int) -> None:
    path = tmp_path / "p.json"
    place = int(at * (len(whole) - 2))  # the last byte but one closes the object
    damaged = {
        "cut": whole[:place],
        "flip": whole[:place] + bytes([whole[place] ^ by]) + whole[place + 1 :],
        "insert": whole[:place] + bytes([by]) + whole[place:],
    }[how]
    path.write_bytes(damaged)
    if damaged.strip() == whole.strip():
        return
    try:
        result = load_plans(path)
    except DataError as error:
        refused = error.exit_code == 65 and str(path) in str(error)
    else:
        refused = json.loads(damaged) == json.loads(whole) and result == PLANS  # white space between tokens
    assert refused


def test_a_plan_that_was_edited_with_care_is_still_not_the_one_its_digest_names(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save_plans(path, PLANS)
    body = json.loads(path.read_text())
    body["plans"][0]["plan"]["region"] = "us"
    del body["digest"]
    path.write_text(json.dumps({**body, "digest": digest(body)}))
    with pytest.raises(DataError, match="plan 1 does not match its digest"):
        load_plans(path)
    body["plans"][0]["plan"]["surprise"] = 1
    path.write_text(json.dumps({**body, "digest": digest(body)}))
    with pytest.raises(DataError, match="unknown key 'surprise'"):
        load_plans(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "not a saved plan"),
        ("{}", "not a saved plan"),
        ("[" * 100_000, "not JSON"),
        ('{"format_version": 1, "plans": []}', "format 1, this console reads format 2"),
        ('{"format_version": 3, "plans": []}', "format 3, this console reads format 2"),
        ('{"format_version": 2, "plans": [NaN]}', "not JSON"),
        ('{"format_version": 2, "plans": [], "digest": null}', "was changed after it was written"),
        ('{"format_version": 2, "plans": ["\\ud800"], "digest": ""}', "was changed"),
    ],
)
def test_what_is_no_saved_plan_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load_plans(path)


def test_only_regular_files_are_plans(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "gone", Path("/dev/zero")):
        with pytest.raises(DataError) as error:
            load_plans(path)
        assert str(error.value).startswith(f"{path}: ")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be saved"):
        save_plans(tmp_path / "file" / "p.json", PLANS)
