"""Drawn landing tables through the real agent: accepted, backfilled, promoted, followed; then whole rows against the truth."""

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from deltalake import DeltaTable

from console.errors import Problems, Unreachable
from tests.doubts import accept_doubts
from tests.life.region import ME, LiveRegion
from tests.worlds.drawn import World, form
from tests.worlds.refused import Refused, refused, unwritten
from tests.worlds.writers import Writer, newest, writer

PIPELINE = "worlds"
FOLDERS = ("plain", "w {a}", "w{a,b}*", "wü?", "w#100%", "w*")
Restart = Literal["", "stopped", "killed"]
RESTARTS: tuple[Restart, ...] = ("", "", "stopped", "killed")
SETTLE_SECONDS = 90.0
LOOK_SECONDS = 0.5
STILL_SECONDS = 2.0  # after which nothing more may have come
STAGES = 3  # commits before the fence, and after it


def restart_of(seed: int) -> Restart:
    return random.Random(f"agent {seed}").choice(RESTARTS)


def pipeline(drawn: Sequence[World | Refused], files: Path) -> None:
    """Landing → a copy of every row → a table below the copy."""
    for folder in ("tables", "materializations"):
        (files / folder).mkdir(parents=True, exist_ok=True)
    (files / "pipeline.yaml").write_text(f"name: {PIPELINE}\n")
    for world in drawn:
        n, time = world.number, "time: ts\n" if world.days else ""
        ignore = "on_rewrite: ignore\n" if world.after == "delete" else ""
        ours = f"partition_by: [{world.target}]\n" if world.target else ""
        (files / "tables" / f"l{n}.yaml").write_text(
            f"kind: landing\n{time}{ignore}columns: {json.dumps(world.columns)}\n"
        )
        for name, source, sql in (("c", "l", world.sql), ("b", "c", "SELECT " + ", ".join(world.copied))):
            (files / "tables" / f"{name}{n}.yaml").write_text(f"{time}{ours}columns: {json.dumps(world.copied)}\n")
            (files / "materializations" / f"{name}{n}.sql").write_text(
                f"/* into: {name}{n} */\n{sql} FROM {source}{n}\n"
            )


async def carried(seed: int, drawn: list[World], restart: Restart, root: Path, session: Any) -> list[str]:
    """The worlds of one seed in one region, in a folder whose name hurts as well.

    restart  how its agent ends before the live commits, which the next one finds all at once
    returns  a line for each table, check or refusal that is not as it has to be
    """
    chance = random.Random(-seed)
    wrong = [f"seed {seed}: {item}" for item in unwritten(chance, root / "unwritten")]
    region = LiveRegion(root / chance.choice(FOLDERS), rows=3, most=1000)
    tables = [writer(world, region.warehouse / f"l{world.number}", session) for world in drawn]
    for world, table in zip(drawn, tables, strict=True):
        stage(world, table, world.before, history=True)
        world.fence = newest(region.warehouse / f"l{world.number}")
    try:
        refusals = refused(chance, len(drawn), region.warehouse)
        wrong += [f"seed {seed}: {item}" for item in await _refusals(region, drawn, refusals, root)]
        pipeline(drawn, root / "files")
        region.install(PIPELINE, root / "files")
        plan = await region.plan(PIPELINE)
        assert not plan.refusals, f"seed {seed}: {plan.refusals}"
        await region.driver.accept(plan, ME)
        status = await region.until(PIPELINE, "awaiting-confirmation", seconds=900)
        wrong += [f"seed {seed}: check {check}" for check in status.checks if check.ok is False]
        await accept_doubts(region.driver, PIPELINE, status, ME)
        await region.driver.promote(PIPELINE, status.rollout, status.was, ME)
        if restart:
            await _ended(region, killed=restart == "killed")
        for world, table in zip(drawn, tables, strict=True):
            stage(world, table, world.after, history=False)
        await _awake(region)
        wrong += [f"seed {seed}: {restart} {item}" for item in await _settled(region, drawn, session)]
        result = await region.driver.verify(PIPELINE, status.rollout)
        wrong += [f"seed {seed}: {restart} verify {finding}" for finding in result if finding.ok is False]
        return wrong
    finally:
        await region.close()


def stage(world: World, table: Writer, act: str, *, history: bool) -> None:
    """Some commits with rows, and what happens between them."""
    for number in range(STAGES):
        rows = world.draw(world.chance.randrange(1, 6))
        table.append(rows)
        world.lands(rows)
        if act and number == 1:
            doomed = world.chance.sample([row["id"] for row in world.rows], k=max(1, len(world.rows) // 4))
            table.act(act, doomed)
            if history:  # gone before anybody has read it
                world.rewritten(act, doomed)
            else:
                world.acted(act)


async def _refusals(region: LiveRegion, drawn: Sequence[World], refusals: Sequence[Refused], root: Path) -> list[str]:
    """What is not as it has to be of a plan with tables that nobody can follow: refused, each by its code, and nothing written."""
    pipeline([*drawn, *refusals], root / "refused")
    region.install(PIPELINE, root / "refused")
    before, results = _tree(region.warehouse), set[tuple[str, str]]()
    try:
        await region.plan(PIPELINE)
    except Problems as problems:
        results = {(problem.code, problem.node) for problem in problems.problems}
    asked = {(each.code, f"l{each.number}") for each in refusals}
    wrong = [] if results == asked else [f"refused {sorted(results)} instead of {sorted(asked)}"]
    return wrong + [f"written before it was refused: {path}" for path in sorted(_tree(region.warehouse) ^ before)]


def _tree(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


async def _ended(region: LiveRegion, *, killed: bool) -> None:
    if killed:
        data = json.loads((region.warehouse / "_console" / "agent.lock").read_text())
        os.kill(int(data["pid"]), signal.SIGKILL)
        await region.driver.close()
    else:
        await region.driver.stop()


async def _awake(region: LiveRegion) -> None:
    """The agent, started anew if need be: the JVM of one that was killed holds the region until it has noticed."""
    until = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        try:
            return await region.driver.start_agent()
        except Unreachable:
            if asyncio.get_running_loop().time() > until:
                raise
            await asyncio.sleep(LOOK_SECONDS)


async def _settled(region: LiveRegion, drawn: Sequence[World], session: Any) -> list[str]:
    """What is still wrong once it has been right for a moment, or never became so."""
    until = asyncio.get_running_loop().time() + SETTLE_SECONDS
    wrong = await _wrong(region, drawn, session)
    while wrong and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        wrong = await _wrong(region, drawn, session)
    if not wrong:
        await asyncio.sleep(STILL_SECONDS)
        wrong = await _wrong(region, drawn, session)
    return wrong


async def _wrong(region: LiveRegion, drawn: Sequence[World], session: Any) -> list[str]:
    """The feeds are asked once the rows are there."""
    if wrong := [f"{world}: {item}" for world in drawn for item in differences(world, region.warehouse, session)]:
        return wrong
    status = (await region.driver.state(PIPELINE)).status
    standing = {ailing.target: ailing.why for ailing in status.ailing if ailing.standing}
    asked = {f"c{world.number}": world for world in drawn if world.stands}
    wrong = [f"{world}: {name} does not say that it stands" for name, world in asked.items() if name not in standing]
    return wrong + [f"{name} stands: {why}" for name, why in standing.items() if name not in asked]


def differences(world: World, warehouse: Path, session: Any) -> list[str]:
    """session: of Spark, for what deltalake cannot read: it spells a negative decimal of a partition `0.-1`, to itself too"""
    truth = Counter(key(world.shown(row)) for row in world.rows)
    results = []
    for name in ("c", "b"):
        versions = [place.parent for place in (warehouse / f"{name}{world.number}").glob("*/_delta_log")]
        decimal = world.kind.startswith("decimal")
        rows = [row for place in versions for row in _stored(place, session if decimal else None)]
        counts = Counter(key(row) for row in rows)
        if counts != truth:
            results.append(
                f"{name}: too many: {list((counts - truth).items())[:2]}, missing: {list((truth - counts).items())[:2]}"
            )
    return results


def _stored(place: Path, session: Any) -> list[dict[str, Any]]:
    if session is None:
        return list(DeltaTable(str(place)).to_pyarrow_table().to_pylist())
    return list(session.read.format("delta").load(str(place)).toArrow().to_pylist())


def key(row: dict[str, Any]) -> str:
    return json.dumps({name: form(value) for name, value in sorted(row.items())}, ensure_ascii=False)


def carry(seed: int, drawn: list[World], restart: Restart, root: Path, session: Any) -> list[str]:
    return asyncio.run(carried(seed, drawn, restart, root, session))
