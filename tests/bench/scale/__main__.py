"""Writes docs/scale.md from its records: `python -m tests.bench.scale`."""

import sys

from tests.bench.parts import ROOT
from tests.bench.scale import page


def main() -> int:
    if page.renew():
        return 0
    print(f"no {page.RECORD.relative_to(ROOT)}: tests/bench/test_scale.py measures it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
