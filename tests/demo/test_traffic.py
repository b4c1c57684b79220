"""The demo's data: events generated from the log, batches that a producer sends and records."""

import json
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from console.demo.traffic.access_log import SHIPPED, lines_of, payloads, seed
from console.demo.traffic.generate import AGENT_DAYS, DAYS, HEAVY_DAY, TRAFFIC, Traffic, build
from console.demo.traffic.make_data import anonymized, pseudonyms
from console.demo.traffic.producer import MAX_BACKLOG_SECONDS, MAX_BATCH_ROWS, Batch, Ledger, batch_lines, due_batches
from console.errors import DataError, UsageError

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 20, 6, 30, tzinfo=UTC)
COMBINED = (
    '192.0.2.7 - ada [17/May/2015:10:05:03 +0200] "GET /a?q=1 HTTP/1.1" 200 512 "http://x.example/" "curl/8 \\"q\\""'
)
COMMON = '192.0.2.8 - - [17/May/2015:23:59:59 +0000] "POST /b HTTP/1.0" 404 -'


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A small region with a heavy day: more than one round of the log a day."""
    warehouse = tmp_path_factory.mktemp("ap")
    calls: list[tuple[int, int]] = []
    traffic = Traffic(region="ap", rows_a_day=1_000, heavy=11_000, live=5, external=True)
    written = build(traffic, warehouse, NOW, None, lambda day: calls.append((day.done, day.of)))
    table = DeltaTable(str(warehouse / "landing"))
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert calls == [(n, DAYS) for n in range(1, DAYS + 1)]
    rows = table.to_pyarrow_table()
    assert rows.num_rows == written == pc.count_distinct(rows["id"]).as_py()
    events: list[dict[str, Any]] = rows.to_pylist()
    return events


def test_history_fills_fourteen_days_up_to_now(landing: list[dict[str, Any]]) -> None:
    days = Counter(row["ts"].date() for row in landing)
    today = NOW.date()
    expected = {today - timedelta(ago): 11_000 if ago == HEAVY_DAY else 1_000 for ago in range(1, DAYS)}
    assert {day: n for day, n in days.items() if day != today} == expected
    assert 0 < days[today] < 1_000
    assert max(row["ts"] for row in landing) <= NOW


def test_events_know_their_user_agent_only_since_the_service_logs_it(landing: list[dict[str, Any]]) -> None:
    since = NOW.date() - timedelta(AGENT_DAYS - 1)
    for row in landing:
        assert ("user_agent" in json.loads(row["payload"])) == (row["ts"].date() >= since)
    known = [json.loads(row["payload"])["user_agent"] for row in landing if row["ts"].date() >= since]
    assert None in known
    assert any(known)


def test_requests_equal_but_for_their_id_stay_equal_in_every_round(landing: list[dict[str, Any]]) -> None:
    heavy = NOW.date() - timedelta(HEAVY_DAY)
    rows = Counter((row["ts"], row["payload"]) for row in landing if row["ts"].date() == heavy)
    assert sum(n - 1 for n in rows.values()) >= 19


def test_every_region_gets_what_the_demo_promises() -> None:
    full_days = {name: t.rows_a_day * (DAYS - 2) + t.heavy for name, t in TRAFFIC.items()}
    assert full_days["eu"] >= 1_500_000
    assert full_days["us"] >= 400_000
    assert full_days["ap"] >= 60_000
    assert {name: t.live for name, t in TRAFFIC.items()} == {"eu": 200, "us": 50, "ap": 5}


def test_the_shipped_log_holds_no_address_of_anybody() -> None:
    events = [json.loads(line) for line in lines_of(SHIPPED)]
    assert len(events) == 10_000
    own = ("192.0.2.", "198.51.100.", "203.0.113.", "2001:db8:")
    assert all(event["ip"].startswith(own) for event in events)
    assert SHIPPED.stat().st_size < 300_000
    same = Counter(tuple(event.values()) for event in events)
    assert sum(n - 1 for n in same.values()) == 19


@given(st.sets(st.ip_addresses().map(str), max_size=2_000), st.binary(min_size=32, max_size=32))
def test_different_addresses_get_different_pseudonyms(addresses: set[str], key: bytes) -> None:
    pseudonym_of = pseudonyms(addresses, key)
    assert set(pseudonym_of) == addresses
    assert len(set(pseudonym_of.values())) == len(addresses)
    assert pseudonyms(sorted(addresses, reverse=True), key) == pseudonym_of


def test_what_somebody_searched_for_elsewhere_is_cut_off() -> None:
    event = {
        "event_id": 1, "timestamp": "2015-05-17T10:05:03Z", "ip": "8.8.8.8", "method": "GET", "path": "/?q=kept",
        "protocol": "HTTP/1.1", "status": 200, "bytes": 1, "referrer": "http://9.9.9.9/find?q=secret", "user_agent": None,
    }  # fmt: skip
    out = anonymized([json.dumps(event)], b"k" * 32)
    assert "secret" not in out
    assert "8.8.8.8" not in out
    assert "9.9.9.9" not in out
    assert json.loads(out)["path"] == "/?q=kept"


def test_a_users_own_log_is_read_in_both_formats_and_bad_lines_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes("\n".join([COMBINED, COMMON, "no line of a log", ""]).encode() + b"\xff\xfe\n")
    connection, events = seed(log)
    assert events == 2
    first, second = map(json.loads, payloads(connection))
    assert (first["path"], first["bytes"], first["user_agent"]) == ("/a?q=1", 512, 'curl/8 \\"q\\"')
    assert (second["status"], second["bytes"], second["referrer"], second["user_agent"]) == (404, None, None, None)
    of_day = connection.sql("SELECT of_day_us FROM seed ORDER BY n").fetchall()
    assert of_day == [((8 * 3600 + 5 * 60 + 3) * 10**6,), ((86400 - 1) * 10**6,)]


def test_a_file_that_is_no_log_is_refused_with_an_example(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("hello\n")
    with pytest.raises(DataError, match="none of 1 lines"):
        seed(log)
    with pytest.raises(UsageError, match="cannot read"):
        seed(tmp_path / "absent")


def test_equal_requests_get_equal_durations_and_one_address_one_tenant() -> None:
    connection, _ = seed(None)
    durations: dict[str, float] = {}
    tenants: dict[str, str] = {}
    for event in map(json.loads, payloads(connection)):
        assert tenants.setdefault(event["ip"], event.pop("tenant")) in tenants.values()
        duration = event.pop("duration_ms")
        assert duration > 0
        assert durations.setdefault(json.dumps(event), duration) == duration
    assert len(set(tenants.values())) == 3


@given(st.integers(0, 10**6), st.integers(1, MAX_BATCH_ROWS), st.booleans())
def test_a_batch_sent_again_is_the_same_to_the_byte(first: int, rows: int, external: bool) -> None:
    batch = Batch("eu-s1-", first, rows, 1_800_000_000.25)
    events = ['{"a":1}', '{"b":2}']
    sent = batch_lines(batch, "eu", events, external)
    assert sent == batch_lines(Batch(**json.loads(json.dumps(asdict(batch)))), "eu", events, external)
    decoded = [json.loads(line) for line in sent]
    assert [row["id"] for row in decoded] == [f"eu-s1-{n}" for n in range(first, first + rows)]
    assert all(("ext_id" in row) == external for row in decoded)


def test_a_producer_killed_while_sending_leaves_its_batch_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "eu.ndjson"
    one, two = Batch("eu-s1-", 0, 200, 1.5), Batch("eu-s1-", 200, 200, 2.5)
    with closing(Ledger(path)) as ledger:
        assert ledger.unacknowledged() is None
        for what, batch in (("sending", one), ("acknowledged", one), ("sending", two)):
            ledger.note(what, batch)
        assert ledger.unacknowledged() == two
    whole = path.read_text()
    path.write_text(whole + '{"what": "acknowl')
    with closing(Ledger(path)) as ledger:
        assert ledger.unacknowledged() == two
    with closing(Ledger(path)) as ledger:
        ledger.note("acknowledged", two)
        assert ledger.unacknowledged() is None


@given(
    st.floats(0.5, 500),
    st.lists(st.floats(0.001, 120), min_size=1, max_size=60),
)
def test_traffic_keeps_its_rate_and_its_order_however_the_agent_stumbles(rate: float, pauses: list[float]) -> None:
    now, times = 0.0, [(0.0, 0.0)]
    for pause in pauses:
        now += pause
        times.append((now, now))
    batches = [batch for batch in due_batches("p-", rate, iter(times)) if batch]
    ends = [0]
    for batch in batches:
        assert batch.first == ends[-1]
        assert 1 <= batch.rows <= MAX_BATCH_ROWS
        ends.append(batch.first + batch.rows)
    assert ends[-1] <= now * rate
    if max(pauses) < MAX_BACKLOG_SECONDS and rate * max(pauses) < MAX_BATCH_ROWS:
        assert ends[-1] > (now - max(pauses)) * rate - 2
