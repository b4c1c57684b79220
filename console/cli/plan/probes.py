"""`--probe`: checks in each region's data whether the values of its history convert, before a plan relies on it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from console.model.plan import Plan

if TYPE_CHECKING:
    from console.cli.wiring import OpenProject
    from console.drivers.protocol import Driver
    from console.planning.loss.probe import Probe, ProbeResult


async def probe_all(project: "OpenProject", plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """The plans with the results from their regions' data; regions without a probe are not contacted.

    raises the first error of a region that could not answer
    """
    from console.planning.loss.probe import probes

    asked = {plan.region: probes(plan) for plan in plans}
    if not any(asked.values()):
        return tuple(plans)
    async with project.drivers() as drivers:
        return tuple(await asyncio.gather(*(_probed(project, drivers, plan, asked[plan.region]) for plan in plans)))


async def _probed(
    project: "OpenProject", drivers: "Mapping[str, Driver]", plan: Plan, asked: "Sequence[Probe]"
) -> Plan:
    from console.planning.loss.probe import probed

    return probed(plan, [await _ask(drivers[plan.region], project.pipeline, probe) for probe in asked])


async def _ask(driver: "Driver", pipeline: str, probe: "Probe") -> "ProbeResult":
    from console.planning.loss.probe import EXAMPLES, ProbeResult

    count = await driver.query(pipeline, probe.count, (probe.source,), {}, 1)
    values = int(count.rows[0][0]) if count.rows else 0
    if not values:
        return ProbeResult(probe, 0)
    some = await driver.query(pipeline, probe.keys, (probe.source,), {}, EXAMPLES)
    return ProbeResult(probe, values, tuple(", ".join(map(str, row)) for row in some.rows))
