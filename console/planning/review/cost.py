"""The cost of a plan in the region's currency, and the disk space that it needs there."""

from dataclasses import replace

from console.errors import Problem
from console.model.live import Live
from console.model.plan import ACTIONS, HistoryOption, NodeChange, Plan, Price
from console.model.region import Region
from console.model.step import Backfill
from console.planning.review.second_spark import with_second_spark
from console.remedy import Edit, Elsewhere, RunCommand

_TB = 1e12


def priced(price: Price, region: Region, *, second: bool = False) -> Price:
    """The same with money: for the bytes read, the cores for the duration, and a month's storage of the bytes written.

    second  whether it is of a build on the region's second Spark
    """
    prices = region.prices
    spark = region.backfill_spark.spark if second and region.backfill_spark else region.spark
    hours = price.seconds / 3600 * spark.cores
    return replace(
        price,
        money=price.bytes / _TB * prices.tb_read + hours * prices.core_hour,
        monthly=price.written / _TB * prices.tb_month,
    )


def _written(node: NodeChange, live: Live) -> int:
    """Bytes of a node's new version: those of the live version, or for a new table at most those of its sources."""
    if node.kind != "table" or not ACTIONS[node.action].rebuilds or not node.price.bytes:
        return 0
    stats = live.table(node.name)
    return stats.bytes if stats is not None and stats.bytes else node.price.bytes


def _option(option: HistoryOption, node: NodeChange, live: Live, region: Region) -> HistoryOption:
    """The same with bytes written and money; a choice that moves no row writes none."""
    written = _written(replace(node, price=option.price), live)
    second = region.backfill_spark is not None and region.backfill_spark.takes(option.price.rows, option.price.bytes)
    return replace(option, price=priced(replace(option.price, written=written), region, second=second))


def with_cost(plan: Plan, live: Live, region: Region) -> Plan:
    """The plan with a Spark for each build, bytes written and money in every price, and a problem where disk space is short."""
    plan = with_second_spark(plan, region)
    elsewhere = {step.target for step in plan.steps if isinstance(step, Backfill) and step.second_spark}
    nodes = tuple(
        replace(
            node,
            price=priced(replace(node.price, written=_written(node, live)), region, second=node.name in elsewhere),
            options=tuple(_option(option, node, live, region) for option in node.options),
        )
        if ACTIONS[node.action].rebuilds
        else node
        for node in plan.nodes
    )
    written = sum(node.price.written for node in nodes)
    everything = sum(stats.bytes for stats in live.stats)
    price = priced(replace(plan.price, written=written), region)
    if elsewhere:  # each table by the cores of its own Spark
        price = replace(price, money=sum(node.price.money for node in nodes))
    priced_plan = replace(
        plan,
        nodes=nodes,
        price=price,
        everything=priced(replace(plan.everything, written=everything), region),
        free_bytes=live.free_bytes,
        currency=region.prices.currency,
    )
    return replace(priced_plan, problems=(*priced_plan.problems, *space_problems(priced_plan)))


def space_problems(plan: Plan) -> tuple[Problem, ...]:
    """C120: the plan writes more than the region has free, and would stop halfway."""
    needed, free = plan.price.written, plan.free_bytes
    if not free or needed <= free:
        return ()
    message = f"{plan.region} has {free:,} bytes free and the plan writes about {needed:,}"
    remedies = (
        Elsewhere(what="free space"),
        RunCommand(command="console cleanup"),
        Edit(node="", how="carry it through table by table"),
    )
    return (Problem(code="C120", message=message, severity="refuse", remedies=remedies),)
