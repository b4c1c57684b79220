"""The script of a fake region: how long its batches take, what fails and what differs."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Scenario:
    """How a fake region behaves.

    seconds       of a batch, unless `rows_per_second` says otherwise; other steps take a tenth
    failures      step id → how often it fails before it succeeds
    differ, inconclusive  tables whose check finds a difference, or nothing to compare
    """

    seconds: float = 1.0
    rows_per_second: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)
    differ: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
