"""The checks of a fake region that continue after a promotion, what follows from them, and who decides, by the rules of the real
agent."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from console.drivers.fake.disk import FakeDisk
from console.drivers.fake.scenario import Scenario
from console.drivers.protocol import Who
from console.model.breach import Breached, WatchEnded, WatchNews, WatchSteered, news_text
from console.model.event import Checked, Logged, RolledBack
from console.model.identity import AgentReason, agent_reason, by_agent
from console.model.status import Verb


class FakePipeline(Protocol):
    """The part of a fake agent that takes a release back."""

    disk: FakeDisk

    def rollback(self, live: str, who: Who) -> RolledBack: ...


def is_watched(disk: FakeDisk) -> bool:
    rules = disk.plan.gate if disk.plan else None
    return disk.status.state == "live" and rules is not None and rules.watch > 0 and not disk.status.watched.ended


def taken_back(disk: FakeDisk) -> str:
    """The release that the agent took back, since when no person has promoted; "" for none."""
    live = disk.row(disk.live) if disk.live else None
    return disk.in_state("previous") if live and agent_reason(live.by) is AgentReason.BREACH else ""


def steer(disk: FakeDisk, verb: Verb, who: Who) -> bool:
    """Store a person's `pause` or `resume` of a watch; False if the verb is not a decision about one."""
    if verb == "pause" and is_watched(disk):
        _keep(disk, WatchSteered(by=who.name, verb="pause"))
        return True
    if verb == "resume" and disk.status.state == "live" and disk.status.watched.holds:
        _keep(disk, WatchSteered(by=who.name, verb="resume"))
        return True
    return False


async def go_on(agent: FakePipeline, script: Scenario, sleep: Callable[[float], Awaitable[None]]) -> None:
    """One round as long as a batch, in which the script's check fails; then the watch ends."""
    await sleep(script.seconds)
    disk = agent.disk
    rules = disk.plan.gate if disk.plan else None
    if rules is None or not is_watched(disk):
        return
    if script.breach and not disk.status.watched.knows("requests", script.breach):
        detail = "planted by the script"
        disk.keep(Checked(table="requests", check=script.breach, ok=False, detail=detail))
        _keep(disk, Breached(table="requests", check=script.breach, detail=detail, action=rules.on_breach))
        if rules.on_breach == "rollback" and not disk.status.watched.held_by:
            agent.rollback(disk.status.release, Who(by_agent(AgentReason.BREACH), disk.region))
            return
    await sleep(script.seconds)
    if is_watched(disk):
        _keep(disk, WatchEnded(rounds=1))


def _keep(disk: FakeDisk, news: WatchNews) -> None:
    disk.keep(Logged(news_text(news), "error" if isinstance(news, Breached) else "info", news))
