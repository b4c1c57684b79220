"""Tables that keep the newest row of each key, and each row once: built beside a writer, copied from themselves where keys are left out,
rolled back and forward again. Judged by DuckDB over the landing rows.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.life.region import LiveRegion, multiset
from tests.life.test_history import LANDING, written

# its kinds are in every run among the rows of tests/closure/test_carried.py
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
IP, STATUS = "get_json_object(payload, '$.ip')", "CAST(get_json_object(payload, '$.status') AS INT)"
LEFT_OUT = "192.0.2.7"


def files(where: str = "") -> dict[str, str]:
    return {
        "pipeline.yaml": "description: one row of each key\n",
        "tables/landing.yaml": LANDING,
        "tables/hosts.yaml": (
            "kind: latest\nkey: [ip]\norder_by: [ts, id]\ncolumns: {ip: string, ts: timestamp, id: string, status: int}\n"
        ),
        "materializations/see.sql": f"/* into: hosts */\nSELECT {IP} AS ip, ts, id, {STATUS} AS status FROM landing{where}\n",
        "tables/answers.yaml": "kind: distinct\ncolumns: {ip: string, status: int}\n",
        "materializations/answer.sql": f"/* into: answers */\nSELECT DISTINCT {IP} AS ip, {STATUS} AS status FROM landing{where}\n",
    }


def hosts(kept: str) -> str:
    """DuckDB: the newest row of each host, an unknown time being the oldest."""
    return f"""SELECT payload->>'$.ip' AS ip, ts, id, CAST(payload->>'$.status' AS INT) FROM landing WHERE {kept}
      QUALIFY row_number() OVER (PARTITION BY ip ORDER BY ts DESC NULLS LAST, id DESC) = 1"""


async def same(region: LiveRegion, kept: str = "true") -> None:
    await region.followed("web")
    result = await region.table("web", "ip, ts, id, status", "hosts")
    assert multiset(result) == multiset(region.truth(hosts(kept)))
    answers = f"SELECT DISTINCT payload->>'$.ip', CAST(payload->>'$.status' AS INT) FROM landing WHERE {kept}"
    assert multiset(await region.table("web", "ip, status", "answers")) == multiset(region.truth(answers))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("newest"), rows=600)
    try:
        yield live
    finally:
        await live.close()


async def test_each_key_has_its_newest_row_through_a_copy_of_the_table_itself(
    region: LiveRegion, tmp_path: Path
) -> None:
    region.install("web", written(tmp_path / "before", files()))
    await region.roll_out("web")
    region.write("web")
    region.install("web", written(tmp_path / "after", files(f" WHERE {IP} <> '{LEFT_OUT}'")))
    plan = await region.plan("web")
    assert {node.name: node.action for node in plan.nodes if node.action != "keep"} == {
        "hosts": "forward",
        "answers": "forward",
    }
    await region.roll_out("web", filtered=("hosts", "answers"))
    await region.roll_back("web")
    await region.end_writing()
    await same(region)
    await region.roll_out("web", filtered=("hosts", "answers"))
    await same(region, f"payload->>'$.ip' <> '{LEFT_OUT}'")
