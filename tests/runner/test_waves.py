"""The order of waves and the worst of many outcomes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import (
    AtGate,
    CheckFailed,
    Conflict,
    ConsoleError,
    DataError,
    Problems,
    RegionError,
    Unreachable,
)
from console.model.region import Region
from console.runner.exit_codes import exit_code
from console.runner.view import Outcome
from console.runner.waves import may_go_on, skipped, waves

inventories = st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=12).map(
    lambda rows: [
        Region(name=f"r{i}", warehouse=f"/w/{i}", wave=wave, canary=canary) for i, (wave, canary) in enumerate(rows)
    ]
)


@pytest.mark.slow
@given(inventories)
def test_every_region_goes_once_canaries_first_and_lower_waves_before_higher(regions: list[Region]) -> None:
    by_name = {region.name: region for region in regions}
    order = waves(regions)
    flat = [by_name[name] for wave in order for name in wave]
    assert sorted(region.name for region in flat) == sorted(by_name)
    assert [(not region.canary, region.wave) for region in flat] == sorted(
        (not region.canary, region.wave) for region in regions
    )
    assert all(len({(by_name[name].canary, by_name[name].wave) for name in wave}) == 1 for wave in order)
    assert [outcome.region for outcome in skipped(order)] == [region.name for region in flat]


ENDS = [
    (Outcome("a", "live"), 0),
    (Outcome("b", "unchanged"), 0),
    (Outcome("c", "skipped"), 0),
    (Outcome("d", "awaiting-confirmation", AtGate("x")), 3),
    (Outcome("e", "live", Conflict("x")), 4),
    (Outcome("f", "none", Unreachable("x")), 5),
    (Outcome("g", "failed", RegionError("x")), 1),
    (Outcome("h", "failed", CheckFailed("x")), 1),
    (Outcome("h", "failed", ConsoleError("x")), 1),
    (Outcome("i", "none", DataError("x")), 65),
    (Outcome("j", "none", Problems("x")), 65),
]


@pytest.mark.slow
@given(st.lists(st.sampled_from(ENDS)))
def test_the_exit_code_is_the_worst_and_only_a_wave_without_one_lets_the_next_begin(
    ends: list[tuple[Outcome, int]],
) -> None:
    outcomes, codes = [outcome for outcome, _ in ends], [code for _, code in ends]
    assert exit_code(outcomes) == max(codes, key=[0, 3, 4, 5, 1, 65].index, default=0)
    assert may_go_on(outcomes) == all(
        outcome.state in ("live", "unchanged") for outcome in outcomes if not outcome.error
    ) & (not any(codes))
