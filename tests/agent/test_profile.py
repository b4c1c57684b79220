"""The keys of a JSON column, from real small Delta tables."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.store.profile import Budget, profile
from console.errors import DataError, RegionError

pytestmark = pytest.mark.slow

START = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 14
A_DAY = 40


def payload(day: int, i: int) -> str | None:
    """`ip` always, `user_agent` from the ninth day at noon on, `geo.country` in every fourth row, one row of `rare` in all."""
    if i == 3 and day == 2:
        return None
    if i == 4 and day == 2:
        return "no json"
    data: dict[str, Any] = {"ip": f"10.0.0.{i}", "note": 'mentions "user_agent" and "rare" in a value'}
    if day > 8 or (day == 8 and i >= A_DAY // 2):
        data["user_agent"] = "Mozilla"
    if i % 4 == 0:
        data["geo"] = {"country": "ES"}
    if (day, i) == (5, 7):
        data["rare"] = 1
    return json.dumps(data)


def landing(path: Path, files: int = 1, shift: timedelta = timedelta(0)) -> Path:
    for day in range(DAYS):
        for part in range(files):
            rows = range(part * A_DAY // files, (part + 1) * A_DAY // files)
            stamps = [START + shift + timedelta(days=day, minutes=36 * i) for i in rows]
            texts = [payload(day, i) for i in rows]
            batch = pa.table(
                {"ts": pa.array(stamps, pa.timestamp("us", "UTC")), "payload": pa.array(texts, pa.string())}
            )
            write_deltalake(str(path), batch, mode="append")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return landing(tmp_path_factory.mktemp("w") / "landing")


def keys(profiled: dict[str, Any]) -> dict[str, tuple[float, str, bool]]:
    return {entry["key"]: (round(entry["share"], 4), entry["first_seen"], entry["sure"]) for entry in profiled["keys"]}


def test_a_table_read_whole_gives_exact_shares_and_the_day_on_which_each_key_began(table: Path) -> None:
    profiled = profile(str(table), "payload", "ts", Budget(bytes=1 << 30, seconds=60))
    rows = DAYS * A_DAY
    truth: dict[str, tuple[int, str]] = {}
    for day in range(DAYS):
        for i in range(A_DAY):
            text = payload(day, i)
            data = json.loads(text) if text and text[0] == "{" else {}
            for key in [*data, *(["geo.country"] if "geo" in data else [])]:
                n, first = truth.get(key, (0, f"2026-11-{day + 1:02}"))
                truth[key] = (n + 1, first)
    assert keys(profiled) == {key: (round(n / rows, 4), first, True) for key, (n, first) in truth.items()}
    assert keys(profiled)["user_agent"][1] == "2026-11-09"
    assert (profiled["rows"], profiled["sampled"], profiled["null"], profiled["not_json"]) == (rows, rows, 1, 1)


def test_a_sample_still_finds_the_very_day_by_searching_the_days_before(tmp_path: Path) -> None:
    path = landing(tmp_path / "landing", files=2)
    # one row of each file: that of the ninth day is from before noon
    profiled = profile(str(path), "payload", "ts", Budget(bytes=1 << 30, seconds=60, rows_a_file=1))
    assert profiled["sampled"] == 2 * DAYS
    assert keys(profiled)["user_agent"][1:] == ("2026-11-09", True)


def test_a_budget_that_ends_early_has_seen_the_days_evenly_and_does_not_claim_to_be_sure(tmp_path: Path) -> None:
    path = landing(tmp_path / "landing", files=4)
    whole = profile(str(path), "payload", "ts", Budget(bytes=1 << 30, seconds=60))
    small = profile(str(path), "payload", "ts", Budget(bytes=whole["bytes_read"] // 3, seconds=60))
    assert small["bytes_read"] < whole["bytes_read"] // 2
    assert small["sampled"] < whole["sampled"]
    assert not keys(small)["user_agent"][2]
    assert keys(small)["user_agent"][1] >= "2026-11-09"
    assert keys(small)["ip"][1:] == ("2026-11-01", True)


def test_a_table_partitioned_by_its_day_and_one_without_times_are_told_too(tmp_path: Path) -> None:
    days = pa.array([(START + timedelta(days=i // 5)).date() for i in range(20)], pa.date32())
    texts = pa.array([json.dumps({"a": 1} | ({"b": 2} if i >= 10 else {})) for i in range(20)])
    write_deltalake(str(tmp_path / "parted"), pa.table({"day": days, "payload": texts}), partition_by=["day"])
    profiled = keys(profile(str(tmp_path / "parted"), "payload", "day", Budget(bytes=1 << 30, seconds=60)))
    assert profiled == {"a": (1.0, "2026-11-01", True), "b": (0.5, "2026-11-03", True)}
    write_deltalake(str(tmp_path / "bare"), pa.table({"payload": texts}))
    assert keys(profile(str(tmp_path / "bare"), "payload", "", Budget(bytes=1 << 30, seconds=60))) == {
        "a": (1.0, "", True), "b": (0.5, "", True),
    }  # fmt: skip


def test_what_is_no_table_or_no_text_is_refused(table: Path, tmp_path: Path) -> None:
    with pytest.raises(RegionError):
        profile(str(tmp_path), "payload", "ts", Budget(bytes=1, seconds=1))
    with pytest.raises(DataError, match="no text column ts"):
        profile(str(table), "ts", "ts", Budget(bytes=1, seconds=1))


def test_columns_that_have_other_names_in_the_files_are_read_by_those(tmp_path: Path) -> None:
    table = tmp_path / "mapped ü"
    at = datetime(2026, 11, 1, tzinfo=UTC)
    write_deltalake(str(table), pa.table({"c1": ['{"ip": 1}', '{"ip": 2, "ua": 3}'], "c2": [at, at]}))
    commit = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in line:
            schema = json.loads(line["metaData"]["schemaString"])
            for number, (field, shown) in enumerate(zip(schema["fields"], ("payload", "ts"), strict=True), 1):
                field["metadata"] = {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": field["name"],
                }
                field["name"] = shown
            line["metaData"]["schemaString"] = json.dumps(schema)
            line["metaData"]["configuration"] = {
                "delta.columnMapping.mode": "name",
                "delta.columnMapping.maxColumnId": "2",
            }
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    profiled = profile(str(table), "payload", "ts", Budget(bytes=1 << 20, seconds=10.0))
    assert {key["key"]: (key["share"], key["first_seen"]) for key in profiled["keys"]} == {
        "ip": (1.0, "2026-11-01"),
        "ua": (0.5, "2026-11-01"),
    }
    assert (profiled["first_day"], profiled["null"]) == ("2026-11-01", 0)
