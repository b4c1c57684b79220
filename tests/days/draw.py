"""Times as a landing table may hold them, drawn by seed, and the truth of them: plain integers of microseconds since 1970.

Uses neither console's code nor Python's calendar, whose range is too small.
"""

import os
import random

SEED = int(os.environ.get("DAYS_SEED", "20261122"))
A_DAY = 86_400 * 10**6
FIRST, LAST = -719_162, 2_932_896  # days since 1970 of 0001-01-01 and 9999-12-31, as ISO 8601 counts them
NAMED = {
    "milliseconds for seconds": 1_795_000_000_000 * 10**6,  # the year 58851
    "after the last": (LAST + 1) * A_DAY,
    "the last": (LAST + 1) * A_DAY - 1,
    "the year 1000": -354_285 * A_DAY,
    "the year 0999": -354_285 * A_DAY - 1,
    "the first": FIRST * A_DAY,
    "before the first": FIRST * A_DAY - 1,
    "the year -1": (FIRST - 731) * A_DAY,
}
FARTHEST = 200_000 * 366 * A_DAY
USUAL = 20_758 * A_DAY  # in November 2026


def times(rng: random.Random, count: int) -> list[int | None]:
    """Mostly of a few days that follow each other; each kind of odd one as well."""
    drawn: list[int | None] = [*NAMED.values(), None]
    while len(drawn) < count:
        match rng.randrange(10):
            case 0:
                drawn.append(rng.choice([FIRST, LAST + 1]) * A_DAY + rng.choice([-1, 1]) * rng.randrange(3 * A_DAY))
            case 1:
                drawn.append(rng.randrange(-FARTHEST, FARTHEST))
            case 2:
                drawn.append(None)
            case _:
                drawn.append(USUAL + rng.randrange(4 * A_DAY))
    rng.shuffle(drawn)
    return drawn


def storable(time: int | None) -> bool:
    """Whether a table that is partitioned by the day can hold a row of this time."""
    return time is None or FIRST <= time // A_DAY <= LAST


def name(time: int | None) -> str:
    """What a row's day is called beside those that a calendar names; "" for a usual one."""
    if time is None:
        return "no day"
    return "" if storable(time) else "0000 and before" if time < 0 else "after 9999"
