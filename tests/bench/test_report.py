"""The page of measurements: a run replaces its own rows and keeps all others."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.report import HEAD, Measurement, write

AT = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
PAINT = Measurement(what="first picture", figure=1.5, limit=1.6, text="1.50 times an empty app's")
REST = Measurement(what="at rest", figure=0.03, limit=0.02, text="3.0 % of a core")


def test_a_row_takes_the_place_of_the_one_that_measured_the_same(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    write(page, PAINT, AT, 2.0)
    write(page, REST, AT, 3.0)
    write(page, replace(PAINT, figure=1.7, text="1.70 times an empty app's"), AT, 4.0)
    assert page.read_text() == HEAD + (
        "| at rest | 3.0 % of a core | 0.02 | **miss** | 2026-11-23 12:00Z | 3.0 |\n"
        "| first picture | 1.70 times an empty app's | 1.6 | **miss** | 2026-11-23 12:00Z | 4.0 |\n"
    )


def test_a_figure_at_its_limit_meets_it() -> None:
    assert replace(PAINT, figure=1.6).met
    assert not replace(PAINT, figure=1.61).met
