"""The script of a fake region: the duration of its batches, failures and differences."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Scenario:
    """The behaviour of a fake region.

    seconds       of a batch, unless `rows_per_second` says otherwise; other steps take a tenth
    failures      step id → number of failures before it succeeds
    differ, inconclusive  tables whose check fails, or is inconclusive
    breach        a check that fails while the promoted release is watched; "" for none
    """

    seconds: float = 1.0
    rows_per_second: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)
    differ: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    breach: str = ""
