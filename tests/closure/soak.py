"""Changes by seed for as long as asked; each goes on behind the last seed on record, and ends in one line of docs/worlds.jsonl.

python -m tests.closure.soak pairs --minutes 20      planned, and followed by their remedies
python -m tests.closure.soak carried --minutes 40    ten a seed on Spark, under a writer, back and forward again
"""

import asyncio
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests import soak
from tests.closure.carried import Carried, carry
from tests.closure.draw import SEED, pair
from tests.closure.edits import KINDS
from tests.closure.test_closure import Outcome
from tests.life.region import LiveRegion

BLOCK, TOGETHER = 50, 10
# refused, or about a column that other tables read: these are the pairs' own
_ALONE = ("a type that loses digits", "a column without NULLs", "a column dropped that is read", "no NULLs any more")


def edits(seed: int, count: int = TOGETHER) -> list[Carried]:
    """Each in a table of its own. What a source that has lost days could not give is carried by the operator's word."""
    rng = random.Random(f"{SEED}/carried/{seed}")
    kinds = [kind for kind in KINDS if kind.table in ("hits", "named", "hourly") and kind.name not in _ALONE]
    kinds = [kind for kind in kinds if "table dropped" not in kind.name]
    drawn: list[Carried] = []
    for number in range(count):
        kind = rng.choice(kinds)
        lost = kind.table == "hits" and rng.random() < 0.4
        lacks = lost and kind.needs == "source" and not kind.name.endswith("with a default")
        drawn.append(Carried(name=f"t{number}", kind=kind, lost=lost, history="carry" if lacks else ""))
    return drawn


def planned(seed: int) -> list[str]:
    outcome = Outcome()
    for number in range(seed, seed + BLOCK):
        outcome.judge(pair(f"{SEED}/{number}"))
    return outcome.wrong


def on_spark(seed: int) -> list[str]:
    async def go(place: Path) -> list[str]:
        region = LiveRegion(place / "region", rows=300, seed=seed, most=100_000)
        try:
            return (await carry(region, edits(seed), place, seed))[0]
        finally:
            await region.close()

    with tempfile.TemporaryDirectory(prefix="console-changes-") as place:
        try:
            return asyncio.run(go(Path(place)))
        except Exception as error:
            return [f"seed {seed}: {type(error).__name__}: {error}"[:900]]


# which → its name on record, what draws and judges, seeds at once, changes a seed
GENERATORS: dict[str, tuple[str, Callable[[int], list[str]], int, int]] = {
    "pairs": ("changes", planned, BLOCK, 1),
    "carried": ("changes carried", on_spark, 1, TOGETHER),
}


def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("generator", choices=sorted(GENERATORS))
    asked = parser.parse_args()
    name, draw, step, each = GENERATORS[asked.generator]
    run, drawn = soak.of_worlds(asked, name), 0
    for seed in run.seeds(step):
        for said in draw(seed):
            run.differs(said)
        drawn += step * each
    return run.summary(name, {"drawn": drawn})


if __name__ == "__main__":
    sys.exit(main())
