"""The forecast in `status`: a line for people, exact figures for programs."""

from dataclasses import replace

import pytest

from console.cli.commands.rollout.overview import overview_data, overview_text
from console.cli.forecast_text import forecast_data, forecast_text
from console.cli.status_text import region_data
from console.runner.handover.facts import handover
from console.runner.outlook.between import Between
from console.runner.outlook.forecast import Forecast, forecast_of
from tests.cli.test_status_text import views

NOON = 1_795_521_600.0  # 2026-11-24 12:00Z
EXPECTED = Forecast(
    at=NOON,
    copied=Between(NOON + 600, NOON + 900),
    gate=Between(NOON + 660, NOON + 1_200),
    rows=Between(1000, 1000),
    written=Between(1.5e9, 2.5e9),
    money=Between(3.1, 3.4),
    batches=7,
)


@pytest.mark.parametrize(
    ("until", "currency", "text"),
    [
        (1_200, "EUR", "at its gate between 2026-11-24 12:11Z and 12:20Z: {} written, 3.10–3.40 EUR, measured in 7 batches"),
        (1_200, "", "at its gate between 2026-11-24 12:11Z and 12:20Z: {} written, measured in 7 batches"),
        (86_400, "", "at its gate between 2026-11-24 12:11Z and 2026-11-25 12:00Z: {} written, measured in 7 batches"),
    ],
)  # fmt: skip
def test_a_line_names_the_gate_the_bytes_and_the_money_where_there_are_prices(
    until: float, currency: str, text: str
) -> None:
    expected = replace(EXPECTED, gate=Between(NOON + 660, NOON + until))
    line = forecast_text(expected, currency)
    begin, _, end = text.partition("{}")
    assert line.startswith(begin)
    assert line.endswith(end)
    assert "–" in line.removeprefix(begin).removesuffix(end), "an interval of bytes"


def test_json_has_every_interval_and_null_without_a_forecast() -> None:
    assert forecast_data(None) is None
    data = forecast_data(EXPECTED)
    assert data is not None
    assert data["gate"] == {"from": NOON + 660, "until": NOON + 1_200}
    assert (data["batches"], data["money"]["until"], data["bytes_written"]["from"]) == (7, 3.4, 1.5e9)


def test_status_and_handover_tell_of_a_running_rollout_what_the_screen_tells() -> None:
    running = replace(views()[10], heard=1_020.0)
    expected = forecast_of(running, running.heard)
    assert expected is not None
    assert region_data(running)["forecast"] == forecast_data(expected)
    assert region_data(replace(running, link="unreachable"), "no answer")["forecast"] is None
    name = running.region.name
    assert f"{name}: {forecast_text(expected)}" in overview_text([running], running.heard)
    ready = overview_data([running], running.heard)["ready"]
    assert ready == {name: {"from": expected.gate.low, "until": expected.gate.high}}
    given = handover("web", {name: running}, {}, "ada", 1_020.0)
    assert any(
        "expected at its gate between 1970-01-01 00:1" in fact for region in given.running for fact in region.facts
    )
