"""The proof of the way back on real Spark and Delta: a file that a VACUUM took, an endpoint that new rows break, a feed that stops.

The agent runs in this process; one JVM for all tests, which run in this order.
"""

import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.agent.way_back import endpoints, prover
from console.errors import CheckFailed, FeedStopped
from console.model.codec import encode
from console.model.way_back import WayBackFinding, WayBackProof
from tests.agent.test_endpoint_calls import STATUS, CalledRegion
from tests.agent.test_expectations import CANARY

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
# of the rows of one instant, which none has before a live row gets it
OF_INSTANT = "SELECT sum(CAST(status AS INT)) AS n FROM requests WHERE ts = TIMESTAMP '2026-11-02 12:00:00'\n"
CALL = "calls:\n  - parameters: {day: 2026-11-02}\n"
SECONDS = 60.0


class PromotedRegion(CalledRegion):
    """r2 is live, with a table that was rebuilt; r1 is previous, with two endpoints."""

    async def promoted_twice(self, place: Path) -> None:
        for name, status in (("first", STATUS), ("second", f"concat({STATUS}, '')")):
            root = self.written(place / name, status=status)
            for other in ("by_status", "by_address"):
                for file in (root / "endpoints").glob(f"{other}.*"):
                    file.unlink()
            (root / "endpoints" / "of_day.calls.yaml").write_text(CALL)
            (root / "endpoints" / "of_instant.sql").write_text(OF_INSTANT)
            stands = await self.changed(root)
            assert stands.shown == "awaiting-confirmation", stands.why
            self.promote()

    @property
    def old(self) -> str:
        previous = self.controller.releases.in_state("previous")
        assert previous is not None
        state = previous.release.table("requests")
        assert state is not None
        return self.controller.path(state.version.path)

    def until(self, true: Callable[[WayBackProof], bool]) -> WayBackProof:
        """What the agent's own rounds come to, as a console sees it."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.service.agent.tick()
            proof = self.service.state("web")["status"].way_back
            if proof is not None and true(proof):
                return proof
            time.sleep(0.2)
        raise AssertionError(f"still {proof}")


def of(proof: WayBackProof, part: str) -> list[WayBackFinding]:
    return [finding for finding in proof.findings if finding.part == part]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PromotedRegion]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prover, "PROOF_SECONDS", 0.5)
        patch.setattr(endpoints, "PROOF_SECONDS", 0.5)
        patch.setattr(endpoints, "SHARE", 0.0)
        live = PromotedRegion(tmp_path_factory.mktemp("proven"))
        try:
            await live.promoted_twice(live.root / "files")
            yield live
        finally:
            live.service.agent.stop()
            await live.close()


async def test_a_release_that_is_whole_is_proven_with_all_its_feeds_files_and_endpoints(region: PromotedRegion) -> None:
    proof = region.until(lambda proof: proof.state == "passed")
    landing = str(region.warehouse / "landing")
    named = sum(len(DeltaTable(path).file_uris()) for path in (region.old, landing))
    assert (proof.release, proof.feeds, proof.files, proof.endpoints) == ("r1", 1, named, 2)


async def test_a_vacuum_of_one_file_of_the_previous_version_turns_it_red_and_shuts_the_way(
    region: PromotedRegion,
) -> None:
    victim = Path(str(DeltaTable(region.old).file_uris()[0]).removeprefix("file://"))
    spared = victim.rename(region.root / "spared")
    proof = region.until(lambda proof: proof.state == "failed")
    (finding,) = of(proof, "file")
    assert f"{region.old}/{finding.name}" == str(victim)
    with pytest.raises(CheckFailed, match=victim.name):
        region.controller.rollback("r2", "ada", "laptop")
    spared.rename(victim)
    assert region.until(lambda proof: proof.state == "passed").endpoints == 2


async def test_an_endpoint_that_a_new_row_breaks_fails_the_proof_and_no_value_is_kept(region: PromotedRegion) -> None:
    """The row flows into both releases; the endpoint of the older one casts what it holds."""
    region.arrives(f"{CANARY}-later")
    proof = region.until(lambda proof: bool(of(proof, "endpoint")))
    (finding,) = of(proof, "endpoint")
    assert (finding.name, finding.state) == ("of_instant", "failed")
    assert "CAST_INVALID_INPUT" in finding.why
    assert CANARY not in json.dumps(encode(proof))


async def test_a_feed_of_the_previous_release_that_stops_fails_the_proof_and_shuts_the_way(
    region: PromotedRegion,
) -> None:
    """Somebody empties the older table by hand: its feed stops in front of the next rows."""
    DeltaTable(region.old).delete()
    region.arrives("200")
    proof = region.until(lambda proof: any(finding.state == "failed" for finding in of(proof, "feed")))
    (finding,) = of(proof, "feed")
    assert finding.name == "parse"
    with pytest.raises(FeedStopped) as refused:
        region.controller.rollback("r2", "ada", "laptop")
    assert refused.value.code == "E_FOREIGN"
