"""Drawn landing tables through the real agent: accepted, backfilled, followed; then whole rows against the truth."""

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.life.region import ME, LiveRegion
from tests.worlds.drawn import World, form, worlds
from tests.worlds.writers import Writer, writer

PIPELINE = "worlds"
FOLDERS = ("plain", "w {a}", "w{a,b}*", "wü?", "w#100%", "w*")
SETTLE_SECONDS = 90.0
STAGES = 3  # commits before the fence, and after it


@dataclass
class Outcome:
    """differences: a line for each table that is not as it has to be, with its world."""

    seed: int
    worlds: list[World]
    differences: list[str]


def pipeline(drawn: list[World], files: Path) -> None:
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


async def carried(seed: int, many: int, root: Path, session: Any) -> Outcome:
    """The worlds of one seed in one region, in a folder whose name hurts as well."""
    drawn = worlds(seed, many)
    chance = random.Random(-seed)
    region = LiveRegion(root / chance.choice(FOLDERS), rows=3, most=1000)
    try:
        tables = [writer(world, region.warehouse / f"l{world.number}", session) for world in drawn]
        for world, table in zip(drawn, tables, strict=True):
            stage(world, table, world.before, lost=True)
        pipeline(drawn, root / "files")
        region.install(PIPELINE, root / "files")
        plan = await region.plan(PIPELINE)
        assert not plan.refusals, f"seed {seed}: {plan.refusals}"
        await region.driver.accept(plan, ME)
        status = await region.until(PIPELINE, "awaiting-confirmation", seconds=600)
        wrong = [f"seed {seed}: check {check}" for check in status.checks if check.ok is False]
        for world, table in zip(drawn, tables, strict=True):
            stage(world, table, world.after, lost=False)
        await region.driver.wake()
        with suppress(AssertionError):  # a feed that stands still is seen by its rows
            await region.followed(PIPELINE, SETTLE_SECONDS)
        why = (await region.driver.state(PIPELINE)).status.why
        for world in drawn:
            wrong += [f"seed {seed}: {world}: {said} {why}" for said in differences(world, region.warehouse)]
        return Outcome(seed, drawn, wrong)
    finally:
        await region.close()


def stage(world: World, table: Writer, act: str, *, lost: bool) -> None:
    """Some commits with rows, and what happens between them. lost: what is deleted is gone before anybody reads it."""
    for number in range(STAGES):
        rows = world.draw(world.chance.randrange(1, 6))
        table.append(rows)
        world.rows += [world.stored(row) for row in rows]
        if act and number == 1:
            doomed = world.chance.sample([row["id"] for row in world.rows], k=max(1, len(world.rows) // 4))
            table.act(act, doomed)
            if act == "delete" and lost:
                world.rows = [row for row in world.rows if row["id"] not in doomed]


def differences(world: World, warehouse: Path) -> list[str]:
    truth = Counter(_key(world.shown(row)) for row in world.rows)
    found = []
    for name in ("c", "b"):
        versions = [place.parent for place in (warehouse / f"{name}{world.number}").glob("*/_delta_log")]
        rows = [row for place in versions for row in DeltaTable(str(place)).to_pyarrow_table().to_pylist()]
        held = Counter(_key(row) for row in rows)
        if held != truth:
            found.append(
                f"{name}: too many: {list((held - truth).items())[:2]}, missing: {list((truth - held).items())[:2]}"
            )
    return found


def _key(row: dict[str, Any]) -> str:
    return json.dumps({name: form(value) for name, value in sorted(row.items())}, ensure_ascii=False)


def carry(seed: int, many: int, root: Path, session: Any) -> Outcome:
    return asyncio.run(carried(seed, many, root, session))
