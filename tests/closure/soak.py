"""Changes by seed for as long as asked; each goes on behind the last seed on record, and ends in one line of docs/worlds.jsonl.
What takes minutes a seed leaves a line of each.

python -m tests.closure.soak pairs --minutes 20      planned, and followed by their remedies
python -m tests.closure.soak carried --minutes 40    edits of ten tables a seed on Spark, under a writer, back and forward again
python -m tests.closure.soak from-now --minutes 10   edits whose files are taken over, on files without Spark
"""

import asyncio
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from console.planning import PlannerCache
from tests import soak
from tests.closure.carried import carry, found_by_verify
from tests.closure.deal import CARRIED, dealt, drawn_from_now
from tests.closure.draw import SEED, pair
from tests.closure.from_now import carried_from_now
from tests.closure.test_closure import Outcome
from tests.life.region import LiveRegion

BLOCK, TOGETHER = 50, 10


class Block(NamedTuple):
    """What a block of seeds gave. carried: changes that had an end to be compared; the others were refused, or broken off"""

    wrong: list[str]
    carried: int


def planned(seed: int) -> Block:
    outcome = Outcome()
    for number in range(seed, seed + BLOCK):
        outcome.judge(pair(f"{SEED}/{number}"))
    return Block(outcome.wrong, outcome.ends.total() - outcome.ends["stays refused"])


def taken_over(seed: int) -> Block:
    cache, wrong, carried = PlannerCache(), list[str](), 0
    for number in range(seed, seed + BLOCK):
        rng = random.Random(f"{SEED}/from now/{number}")
        kinds, word = drawn_from_now(rng)
        with tempfile.TemporaryDirectory(prefix="console-from-now-") as place:
            done = carried_from_now(kinds, word, Path(place), rng, cache)
        carried += not done.refused and not done.without_effect
        if done.difference:
            wrong.append(f"[{number}] {' + '.join(map(str, kinds))}{word}: {done.difference}")
    return Block(wrong, carried)


def on_spark(seed: int) -> Block:
    edits = dealt(f"{SEED}/carried/{seed}", CARRIED, TOGETHER)

    async def go(place: Path) -> list[str]:
        region = LiveRegion(place / "region", rows=300, seed=seed, most=100_000)
        try:
            return (await carry(region, edits, place, seed))[0] + await found_by_verify(region)
        finally:
            await region.close()

    with tempfile.TemporaryDirectory(prefix="console-changes-") as place:
        try:
            return Block(asyncio.run(go(Path(place))), sum(len(edit.kinds) for edit in edits))
        except Exception as error:
            return Block([f"seed {seed}: {type(error).__name__}: {error}"[:900]], 0)


# which → its name on record, what draws and judges, seeds at once, changes a seed
GENERATORS: dict[str, tuple[str, Callable[[int], Block], int, int]] = {
    "pairs": ("changes", planned, BLOCK, 1),
    "carried": ("changes carried", on_spark, 1, TOGETHER),
    "from-now": ("changes from now", taken_over, BLOCK, 1),
}


def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("generator", choices=sorted(GENERATORS))
    asked = parser.parse_args()
    name, draw, step, each = GENERATORS[asked.generator]
    run, drawn, carried = soak.of_worlds(asked, name), 0, 0
    for seed in run.seeds(step):
        block = draw(seed)
        if step == 1:
            run.drew(name, seed, {"drawn": each, "carried": block.carried}, *block.wrong)
            continue
        for item in block.wrong:
            run.differs(item)
        drawn, carried = drawn + step * each, carried + block.carried
    return run.code() if step == 1 else run.summary(name, {"drawn": drawn, "carried": carried})


if __name__ == "__main__":
    sys.exit(main())
