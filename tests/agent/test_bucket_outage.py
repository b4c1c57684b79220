"""A bucket that does not answer, and the lease that is not renewed meanwhile, stop neither a feed nor a batch for good."""

import pytest

from console.agent.errors import LeaseLost, StoreUnreachable
from console.agent.failure import kind
from console.agent.feeds.health import TRIES, Health
from console.errors import Conflict, ConsoleError


@pytest.mark.parametrize("error", [StoreUnreachable("no answer"), LeaseLost("not renewed")])
def test_an_outage_is_tried_again_like_any_failure_that_passes(error: ConsoleError) -> None:
    assert kind(error) == "passing"
    health = Health()
    for _ in range(2 * TRIES):
        health.record_failure(error, "requests")
        assert health.stopped is None
    health.reset()
    health.record_failure(Conflict("another"), "requests")
    assert health.stopped
