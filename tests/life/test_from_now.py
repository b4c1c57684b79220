"""`from now` of an aggregate, of a table with two feeds and a rebuilt one below, of the newest row of each key and of one without equal rows, in one
plan: rows go on arriving, and it is rolled back; in the soak the agent is killed on either side of the commit that takes files over.
Judged from the landing rows alone.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.errors import Unreachable
from console.model.status import Status
from tests.doubts import accept_doubts
from tests.life.region import LOOK_SECONDS, ME, SELDOM, LiveRegion
from tests.life.test_history import LANDING, landed, written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio]
POINTS = ("before-commit-history", "after-commit-history")
IP, UA = ("get_json_object(payload, '$.ip')", "get_json_object(payload, '$.ua')")
STATUS, BYTES = (
    "CAST(get_json_object(payload, '$.status') AS INT)",
    "CAST(get_json_object(payload, '$.bytes') AS BIGINT)",
)
MARKED = "ua: {type: string, default: unknown}"
ROWS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string"


def files(*, changed: bool) -> dict[str, str]:
    chosen = "history: from now\n" if changed else ""
    # what its files cannot show as it is wanted: another name, another type, and a default where later rows may be NULL
    ip, size, last = ("client", "BIGINT", MARKED) if changed else ("ip", "INT", "code: int")
    row = f"id, ts, to_date(ts) AS day, {IP} AS {ip}, CAST({BYTES} AS {size}) AS size, {f'{UA} AS ua' if changed else f'{STATUS} AS code'}"
    own = f"{ROWS.replace('ip:', f'{ip}:')}, size: {size.lower()}, {last}"
    newest = f"{IP} AS ip, ts, id, {f'{UA} AS ua' if changed else f'{STATUS} AS code'}"
    below = ("id, ts, ua", ", ua: string") if changed else ("id, ts", "")
    return {
        "pipeline.yaml": "description: tables that go on from now\n",
        "tables/landing.yaml": LANDING,
        "tables/both.yaml": f"{own}}}\n{chosen}",
        "materializations/fine.sql": f"/* into: both */\nSELECT {row} FROM landing WHERE {STATUS} < 400\n",
        "materializations/failed.sql": f"/* into: both */\nSELECT {row} FROM landing WHERE {STATUS} >= 400\n",
        "tables/seen.yaml": f"time: ts\ncolumns: {{id: string, ts: timestamp{below[1]}}}\n",
        "materializations/see.sql": f"/* into: seen */\nSELECT {below[0]} FROM both\n",
        "tables/last.yaml": (
            "kind: latest\nkey: [ip]\norder_by: [ts, id]\ntime: ts\ncolumns: {ip: string, ts: timestamp, id: string, "
            f"{'ua: string' if changed else 'code: int'}}}\n{chosen}"
        ),
        "materializations/newest.sql": f"/* into: last */\nSELECT {newest} FROM landing\n",
        "tables/agents.yaml": f"kind: distinct\ncolumns: {{ip: string, {'ua: string' if changed else 'code: int'}}}\n{chosen}",
        "materializations/meet.sql": f"/* into: agents */\nSELECT {IP} AS ip, {f'{UA} AS ua' if changed else f'{STATUS} AS code'} FROM landing\n",
        "tables/hosts.yaml": (
            f"kind: aggregate\ntime: day\npartition_by: [day]\ncolumns: {{day: date, ip: string, hits: bigint{', known: bigint' if changed else ', most: bigint'}}}\n{chosen}"
        ),
        "materializations/count.sql": (
            f"/* into: hosts */\nSELECT to_date(ts) AS day, {IP} AS ip, count(*) AS hits, {f'count({BYTES}) AS known' if changed else f'max({BYTES}) AS most'}"
            " FROM landing GROUP BY ALL\n"
        ),
    }


def crashes(region: LiveRegion) -> Path:
    return region.root / "crashes"


@pytest_asyncio.fixture
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("now"), rows=300)
    (crashes(live) / "fired").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSOLE_CRASH_DIR", str(crashes(live)))
        try:
            yield live
        finally:
            await live.close()


async def killed_at(points: Collection[str], region: LiveRegion, seconds: float = 900) -> Status:
    """The status at the gate, which is reached by an agent that is started again each time; points: where it is killed"""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        assert asyncio.get_running_loop().time() < until
        await asyncio.sleep(LOOK_SECONDS)
        with suppress(Unreachable):
            await region.driver.start_agent()
            status = (await region.driver.state("web")).status
            assert status.held != "failed", (status.why, status.hint)
            if status.shown == "awaiting-confirmation":
                break
    assert {fired.name.partition(".")[0] for fired in (crashes(region) / "fired").iterdir()} == {*points}
    undecided = {(check.table, check.ok) for check in status.checks if check.ok is not True}
    assert undecided == {("agents", None)}  # with a column less, other rows are equal: `holds` compares them
    return status


def taken_over_once(region: LiveRegion, version: str) -> None:
    """One commit names the older files, and each of them has a second name."""
    table = DeltaTable(str(region.warehouse / version))
    notes = [json.loads(text) for text in (line.get("userMetadata") for line in table.history()) if text]
    (linked,) = [note["linked"] for note in notes if note.get("linked")]
    names = [*(region.warehouse / version / "linked").iterdir()]
    assert (len(names), {name.stat().st_nlink for name in names}) == (linked["files"], {2})


async def holds(region: LiveRegion, *, before: Collection[str], at_gate: Collection[str]) -> None:
    """before, at_gate: ids that had landed when the rollout began, and at its gate"""
    truth = landed(region)
    newest = {row["ip"]: id for id, row in sorted(truth.items(), key=lambda item: (_of(item[1]["ts"]), item[0]))}
    for table in ("both", "seen", "last"):
        rows = await region.table("web", "id, ua", table)
        assert Counter(row[0] for row in rows) == Counter(newest.values() if table == "last" else [*truth]), table
        older = "unknown" if table != "last" else None
        for id, ua in rows:
            own = truth[id].get("ua")
            assert ua == own if id not in at_gate else ua == older if id in before else ua in (older, own), (table, id)
    both = await region.table("web", "id, client, size", "both")
    assert {id: values for id, *values in both} == {id: [row["ip"], row["bytes"]] for id, row in truth.items()}
    await equal_rows_are_one(region, before=before, at_gate=at_gate)
    hosts = await region.table("web", "ip, day, hits, known", "hosts")
    counted = {id: row for id, row in truth.items() if row["bytes"] is not None}
    least, most = (by_host(row for id, row in counted.items() if id not in old) for old in (at_gate, before))
    assert {(ip, day): hits for ip, day, hits, _ in hosts} == by_host(truth.values())
    for ip, day, _, known in hosts:
        assert least[ip, day] <= (known or 0) <= most[ip, day], (ip, day)


async def equal_rows_are_one(region: LiveRegion, *, before: Collection[str], at_gate: Collection[str]) -> None:
    """Older rows have no `ua`, and hosts that came before the change and again after it are in both."""
    truth, rows = landed(region), await region.table("web", "ip, ua", "agents")
    older, later = ({(row["ip"], None) for id, row in truth.items() if id in ids} for ids in (before, at_gate))
    least, most = (
        {(row["ip"], row.get("ua")) for id, row in truth.items() if id not in ids} for ids in (at_gate, before)
    )
    found = {(ip, ua) for ip, ua in rows}
    assert len(rows) == len(found)
    assert older | least <= found <= later | most
    assert {ip for ip, _ in older} & {ip for ip, _ in least}


def _of(ts: datetime | None) -> float:
    """A row without a time is the oldest."""
    return ts.timestamp() if ts is not None else float("-inf")


def by_host(rows: Iterable[dict[str, Any]]) -> Counter[tuple[str, str | None]]:
    return Counter((row["ip"], row["ts"] and row["ts"].date().isoformat()) for row in rows)


async def went_back(region: LiveRegion) -> None:
    truth = landed(region)
    rows = {table: await region.table("web", "id", table) for table in ("both", "seen")}
    assert {table: Counter(id for (id,) in ids) for table, ids in rows.items()} == {
        table: Counter([*truth]) for table in rows
    }
    agents = await region.table("web", "ip, code", "agents")
    assert Counter(map(tuple, agents)) == Counter({(row["ip"], row["status"]) for row in truth.values()})
    hosts = await region.table("web", "ip, day, hits", "hosts")
    assert {(ip, day): hits for ip, day, hits in hosts} == by_host(truth.values())


def stored_anew(release: Any) -> list[str]:
    return [state.version.path for name in ("both", "hosts", "last", "agents") if (state := release.table(name))]


async def go_on_from_now(region: LiveRegion, place: Path, points: Collection[str]) -> str:
    """To live and to the last row, with rows arriving all the while. returns  the rollout"""
    region.install("web", written(place / "before", files(changed=False)))
    await region.roll_out("web")
    region.install("web", written(place / "after", files(changed=True)))
    plan = await region.plan("web")
    actions = {node.name: (node.action, node.history) for node in plan.nodes}
    assert actions == {
        "landing": ("keep", ""), "both": ("forward", "from now"), "seen": ("replay", ""), "hosts": ("forward", "from now"),
        "last": ("forward", "from now"), "agents": ("forward", "from now"),
    }  # fmt: skip
    before = {*landed(region)}
    region.write("web", SELDOM)
    for point in points:
        (crashes(region) / point).touch()
    await region.driver.accept(plan, ME)
    status = await killed_at(points, region)
    at_gate = {*landed(region)}
    while {*landed(region)} == at_gate:
        await asyncio.sleep(0.2)
    await accept_doubts(region.driver, "web", status, ME)
    await region.driver.promote("web", status.rollout, status.was, ME)
    for version in stored_anew((await region.driver.survey("web", [])).release):
        taken_over_once(region, version)
    await region.quiet(["web"])
    await holds(region, before=before, at_gate=at_gate)
    return status.rollout


async def go_back(region: LiveRegion) -> None:
    await region.roll_back("web")
    region.write("web")
    await asyncio.sleep(1)
    await region.quiet(["web"])
    await went_back(region)


async def test_tables_go_on_from_now_beside_a_writer_and_back(region: LiveRegion, tmp_path: Path) -> None:
    await go_on_from_now(region, tmp_path, ())
    await go_back(region)


# in every run, an attempt that died on either side is repeated by tests/agent/test_linked_history.py
@pytest.mark.soak
async def test_so_they_do_where_the_agent_is_killed_on_either_side_and_verify_finds_nothing(
    region: LiveRegion, tmp_path: Path
) -> None:
    rollout = await go_on_from_now(region, tmp_path, POINTS)
    assert [item for item in await region.driver.verify("web", rollout) if item.ok is False] == []
    await go_back(region)
