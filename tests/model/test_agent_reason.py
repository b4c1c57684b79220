"""Why the agent acted by itself, written into `by` of an event and read from it again."""

import pytest

from console.model.identity import AGENT, AgentReason, agent_reason, by_agent, identity


@pytest.mark.parametrize(
    ("reason", "after", "by"),
    [
        (AgentReason.CONSOLE_LEFT, "", "the agent, since its console left"),
        (AgentReason.POLICY, "", "the agent, as its region's policy says"),
        (AgentReason.FAILED_LONG_AGO, "72 h", "the agent, 72 h after the failure"),
    ],
)
def test_a_reason_is_read_as_it_was_written(reason: AgentReason, after: str, by: str) -> None:
    assert by_agent(reason, after) == by
    assert agent_reason(by) is reason
    assert identity(by).source == AGENT


def test_a_person_has_no_reason_of_the_agents() -> None:
    assert agent_reason("ada, since its console left") is None
