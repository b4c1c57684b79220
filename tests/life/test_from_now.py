"""`from now` of an aggregate, of a table with two feeds, of the newest row of each key, of one without equal rows and of a table with a rebuilt one below, in one plan: the agent is killed on either side
of the commit that takes files over, rows go on arriving, and it is rolled back. Judged from the landing rows alone.
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
from tests.life.region import ME, SELDOM, LiveRegion
from tests.life.test_history import LANDING, landed, written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
POINTS = ("before-commit-history", "after-commit-history")
IP, UA = ("get_json_object(payload, '$.ip')", "get_json_object(payload, '$.ua')")
STATUS, BYTES = (
    "CAST(get_json_object(payload, '$.status') AS INT)",
    "CAST(get_json_object(payload, '$.bytes') AS BIGINT)",
)
ROWS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string"


def files(*, changed: bool) -> dict[str, str]:
    more, chosen = (", ua: string", "history: from now\n") if changed else ("", "")
    row = f"id, ts, to_date(ts) AS day, {IP} AS ip{f', {UA} AS ua' if changed else ''}"
    # what its files cannot show as it is wanted: another type, and a default where later rows may be NULL
    wide = "BIGINT" if changed else "INT"
    marked = ", ua: {type: string, default: unknown}" if changed else ""
    newest = f"{IP} AS ip, ts, id, {f'{UA} AS ua' if changed else f'{STATUS} AS code'}"
    # the change renames one column of the second table, and drops another
    own = ROWS.replace("ip: string", "client: string") if changed else f"{ROWS}, code: int"
    second = row.replace("AS ip", "AS client") if changed else f"{row}, {STATUS} AS code"
    below = ("id, ts, ua", ", ua: string") if changed else ("id, ts", "")
    return {
        "pipeline.yaml": "description: three tables that go on from now\n",
        "tables/landing.yaml": LANDING,
        "tables/requests.yaml": f"{ROWS}, size: {wide.lower()}{marked}}}\n{chosen}",
        "materializations/parse.sql": f"/* into: requests */\nSELECT {row}, CAST({BYTES} AS {wide}) AS size FROM landing\n",
        "tables/last.yaml": (
            "kind: latest\nkey: [ip]\norder_by: [ts, id]\ntime: ts\ncolumns: {ip: string, ts: timestamp, id: string, "
            f"{'ua: string' if changed else 'code: int'}}}\n{chosen}"
        ),
        "materializations/newest.sql": f"/* into: last */\nSELECT {newest} FROM landing\n",
        "tables/agents.yaml": f"kind: distinct\ncolumns: {{ip: string, {'ua: string' if changed else 'code: int'}}}\n{chosen}",
        "materializations/meet.sql": f"/* into: agents */\nSELECT {IP} AS ip, {f'{UA} AS ua' if changed else f'{STATUS} AS code'} FROM landing\n",
        "tables/seen.yaml": f"time: ts\ncolumns: {{id: string, ts: timestamp{below[1]}}}\n",
        "materializations/see.sql": f"/* into: seen */\nSELECT {below[0]} FROM requests\n",
        "tables/both.yaml": f"{own}{more}}}\n{chosen}",
        "materializations/fine.sql": f"/* into: both */\nSELECT {second} FROM landing WHERE {STATUS} < 400\n",
        "materializations/failed.sql": f"/* into: both */\nSELECT {second} FROM landing WHERE {STATUS} >= 400\n",
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("now"), rows=300)
    (crashes(live) / "fired").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSOLE_CRASH_DIR", str(crashes(live)))
        try:
            yield live
        finally:
            await live.close()


async def killed_on_either_side(region: LiveRegion, seconds: float = 900) -> Status:
    """The status at the gate, which is reached by an agent that is started again each time."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        assert asyncio.get_running_loop().time() < until
        await asyncio.sleep(0.5)
        with suppress(Unreachable):
            await region.driver.start_agent()
            status = (await region.driver.state("web")).status
            assert status.held != "failed", (status.why, status.hint)
            if status.shown == "awaiting-confirmation":
                break
    assert {fired.name.partition(".")[0] for fired in (crashes(region) / "fired").iterdir()} == {*POINTS}
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
    for table in ("requests", "both", "seen", "last"):
        rows = await region.table("web", "id, ua", table)
        assert Counter(row[0] for row in rows) == Counter(newest.values() if table == "last" else [*truth]), table
        older = "unknown" if table in ("requests", "seen") else None
        for id, ua in rows:
            own = truth[id].get("ua")
            assert ua == own if id not in at_gate else ua == older if id in before else ua in (older, own), (table, id)
    sizes = await region.table("web", "id, size", "requests")
    assert dict(sizes) == {id: row["bytes"] for id, row in truth.items()}
    clients = await region.table("web", "id, client", "both")
    assert {id: client for id, client in clients} == {id: row["ip"] for id, row in truth.items()}
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
    rows = {table: await region.table("web", "id", table) for table in ("requests", "both", "seen")}
    assert {table: Counter(id for (id,) in ids) for table, ids in rows.items()} == {
        table: Counter([*truth]) for table in rows
    }
    agents = await region.table("web", "ip, code", "agents")
    assert Counter(map(tuple, agents)) == Counter({(row["ip"], row["status"]) for row in truth.values()})
    hosts = await region.table("web", "ip, day, hits", "hosts")
    assert {(ip, day): hits for ip, day, hits in hosts} == by_host(truth.values())


def stored_anew(release: Any) -> list[str]:
    return [
        state.version.path for name in ("requests", "both", "hosts", "last", "agents") if (state := release.table(name))
    ]


async def test_tables_go_on_from_now_whenever_the_agent_is_killed(region: LiveRegion, tmp_path: Path) -> None:
    region.install("web", written(tmp_path / "before", files(changed=False)))
    await region.roll_out("web")
    region.install("web", written(tmp_path / "after", files(changed=True)))
    plan = await region.plan("web")
    actions = {node.name: (node.action, node.history) for node in plan.nodes}
    assert actions == {
        "landing": ("keep", ""), "requests": ("forward", "from now"), "seen": ("replay", ""),
        "both": ("forward", "from now"), "hosts": ("forward", "from now"),
        "last": ("forward", "from now"), "agents": ("forward", "from now"),
    }  # fmt: skip
    before = {*landed(region)}
    region.write("web", SELDOM)
    for point in POINTS:
        (crashes(region) / point).touch()
    await region.driver.accept(plan, ME)
    status = await killed_on_either_side(region)
    at_gate = {*landed(region)}
    while {*landed(region)} == at_gate:
        await asyncio.sleep(0.2)
    await accept_doubts(region.driver, "web", status, ME)
    await region.driver.promote("web", status.rollout, status.was, ME)
    for version in stored_anew((await region.driver.survey("web", [])).release):
        taken_over_once(region, version)
    await region.quiet(["web"])
    await holds(region, before=before, at_gate=at_gate)
    assert [item for item in await region.driver.verify("web", status.rollout) if item.ok is False] == []

    await region.roll_back("web")
    region.write("web")
    await asyncio.sleep(1)
    await region.quiet(["web"])
    await went_back(region)
