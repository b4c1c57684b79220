"""Writes docs/scale.md from docs/scale-costs.json: `python -m tests.bench.scale`."""

import sys

from console import project
from tests.bench.parts import ROOT
from tests.bench.scale import page
from tests.bench.scale.costs import ScaleRecord


def main() -> int:
    if not page.RECORD.is_file():
        print(f"no {page.RECORD.relative_to(ROOT)}: tests/bench/test_scale.py measures it", file=sys.stderr)
        return 1
    page.write(ScaleRecord.read(page.RECORD), project.load(ROOT).region("us").prices)
    return 0


if __name__ == "__main__":
    sys.exit(main())
