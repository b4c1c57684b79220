"""How large a bench is: `python -m tests.bench` says so in the environment, and without it each has its small size."""

import os
from enum import Enum

SIZE_VARIABLE, ROWS_VARIABLE = "BENCH_SIZE", "BENCH_ROWS"


class Size(Enum):
    """small: all of them in minutes;  long: as large as the goals say, all of them in hours"""

    SMALL = "small"
    LONG = "long"


SIZE = Size(os.environ.get(SIZE_VARIABLE, Size.SMALL.value))


def sized(small: int, long: int) -> int:
    """The number for the size of this run."""
    match SIZE:
        case Size.SMALL:
            return small
        case Size.LONG:
            return long


def rows(small: int) -> int:
    """Rows of history of this run."""
    return int(os.environ.get(ROWS_VARIABLE) or small)
