"""The history of a region behind SSH is read on its host, without starting an agent."""

import pytest

from console.drivers.ssh.driver import SshDriver
from tests.agent.test_ops import BOT, RECEIPTS, STEP, lived
from tests.ssh.host import QUICK, Host

pytestmark = pytest.mark.ssh


async def test_the_past_of_a_region_behind_ssh_is_told_in_full_and_starts_nothing(host: Host) -> None:
    lived(host.folder / "lake")
    driver = SshDriver(host.region(), timeouts=QUICK)
    try:
        past = await driver.history("web", "web-1")
        listed = await driver.history("web")
    finally:
        await driver.close()
    assert [(status.rollout, status.state) for status in past.rollouts] == [("web-1", "cleaned")]
    assert [(r.step, r.day, r.rows_in) for r in past.receipts] == [(STEP.id, r.day, r.rows_in) for r in RECEIPTS]
    assert BOT in {getattr(recorded.event, "by", "") for recorded in past.events}
    assert (listed.rollouts, listed.events, listed.receipts) == (past.rollouts, (), ())
    assert host.processes("serve") == []
