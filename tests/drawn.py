"""Generators that are tests themselves, for as long as asked: `python -m tests.drawn clients --minutes 60`.

    clients   files sent by clients that die, edit and try again      tests/agent/test_loads.py
    days      rows of any day through a real region                   tests/days
    doubles   sums of doubles in random orders                        tests/agent/test_doubles.py

Each goes on behind the last seed on record. A run ends in one line of docs/worlds.jsonl; what a test says when it fails is
printed, and ends the run with 1.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import soak

ROOT = Path(__file__).resolve().parent.parent
SUMS = 2_000


@dataclass(frozen=True)
class Generator:
    """Tests that draw by a seed.

    seeds  how many one run of them draws;  worlds  in each of those
    asked  seed → variables of the environment, arguments of pytest
    """

    place: str
    seeds: int
    worlds: int
    asked: Callable[[int], tuple[dict[str, str], list[str]]]


GENERATORS = {
    "clients": Generator("tests/agent/test_loads.py", 20, 1, lambda seed: ({"LOADS": "20", "SEED": str(seed)}, [])),
    "days": Generator("tests/days", 1, 1, lambda seed: ({"DAYS_SEED": str(seed)}, [])),
    "doubles": Generator(
        "tests/agent/test_doubles.py", 1, 3 * SUMS,
        lambda seed: ({"DOUBLES": str(SUMS), "HYPOTHESIS_PROFILE": "drawn"}, [f"--hypothesis-seed={seed}"]),
    ),
}  # fmt: skip


def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("generator", choices=sorted(GENERATORS))
    asked = parser.parse_args()
    generator, drawn = GENERATORS[asked.generator], 0
    run = soak.of_worlds(asked, asked.generator)
    for seed in run.seeds(generator.seeds):
        env, words = generator.asked(seed)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, generator.place]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False)
        drawn += generator.seeds * generator.worlds
        if done.returncode:
            run.differs(f"seed {seed}: {done.stdout[-8000:]}{done.stderr[-2000:]}")
    return run.summary(asked.generator, {"drawn": drawn})


if __name__ == "__main__":
    sys.exit(main())
