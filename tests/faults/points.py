"""Every crash point of agent and console, in the order in which a rollout of the case meets them."""

STEPS = {
    "preparing": ("create-requests", "create-by_hour"),
    "backfilling": ("backfill-requests-parse",),
    "catching-up": ("catch-up-requests-parse", "catch-up-by_hour-hours"),
    "validating": ("validate",),
}


# A console is killed as well while the region stands in each of these.
STATES = ("preparing", "backfilling", "catching-up", "validating", "awaiting-confirmation", "promoting")


def both(name: str) -> tuple[str, str]:
    return f"before-{name}", f"after-{name}"


# The first rollout of a region: nothing is followed yet, so the first half of these kill an agent before it has started
# a JVM. Of "after one write" and "before the next" the disk tells no difference: one of the two is armed here; of starts and
# ends of steps, a table's, the backfill's start and the validation's end.
FIRST = (
    *both("settings"),
    "after-propose",
    "after-Accepted",
    "after-entered-preparing",
    "after-StepStarted-create-requests",
    "after-commit-create",
    "after-StepDone-create-requests",
    "after-entered-backfilling",
    "after-StepStarted-backfill-requests-parse",
    "after-Fenced",
    "after-commit-take-over",
    "after-commit-history",  # committed, its receipt not yet stored
    "after-BatchDone",
    "after-entered-catching-up",
    "after-entered-validating",
    "after-Checked",
    "after-StepDone-validate",
    "after-entered-awaiting-confirmation",
    "after-entered-promoting",
    "after-swap",  # promoted, not yet recorded
    "after-Promoted",
)
# A change beside a writer and a reader.
LIVE = ("after-commit-landing", "after-commit-live", "before-commit-history", "before-swap")
BACK = ("before-RolledBack", "before-commit-landing")
# Tidying up: what the live release does not name is retired, dropped and forgotten.
TIDYING = ("before-retire", "after-retire", "after-drop", "after-forget")

# What else a rollout and a tidying-up meet; `make soak` arms these as well.
REST = (
    "before-propose",
    "before-Accepted",
    "before-entered-preparing",
    "before-StepStarted-create-requests",
    "before-commit-create",
    "before-StepDone-create-requests",
    *both("StepStarted-create-by_hour"),
    *both("StepDone-create-by_hour"),
    "before-entered-backfilling",
    "before-StepStarted-backfill-requests-parse",
    "before-Fenced",
    "before-commit-take-over",
    *both("BatchStarted"),
    "before-BatchDone",
    *both("StepDone-backfill-requests-parse"),
    "before-entered-catching-up",
    *both("StepStarted-catch-up-requests-parse"),
    *both("StepDone-catch-up-requests-parse"),
    *both("StepStarted-catch-up-by_hour-hours"),
    *both("StepDone-catch-up-by_hour-hours"),
    "before-entered-validating",
    *both("StepStarted-validate"),
    "before-Checked",
    "before-StepDone-validate",
    "before-entered-awaiting-confirmation",
    "before-entered-promoting",
    "before-Promoted",
    "before-commit-live",
    *both("receipts"),
)
REST_TIDYING = ("before-drop", "before-forget")
AGENT = (*FIRST, *LIVE, *REST)

# Entries of a console's journal. Of what it sees, only the gate: a console that died is back before that for certain.
CONSOLE = (
    "console-before-fleet",
    "console-fleet",
    "console-before-intent-accept",
    "console-intent-accept",
    "console-before-outcome",
    "console-outcome",
    "console-saw-entered-awaiting-confirmation",
    "console-before-intent-promote",
    "console-intent-promote",
)

# Points that the acts of this folder do not arm: who does.
ELSEWHERE = {
    "schema-": "tests/stores",
    "commit-compact": "tests/faults/rules/test_maintenance_killed.py",
    "commit-merge": "tests/faults/rules/test_merged_states.py",
    "commit-retention": "tests/faults/rules/test_maintenance_killed.py",
    "commit-vacuum": "tests/objects/test_maintenance_in_bucket.py",
    "quarantine": "tests/faults/rules/test_killed.py",
    "comparison": "tests/faults/rules/test_compared.py",
    "commit-columns": "tests/faults/rules/test_killed.py",
    "commit-copy": "tests/faults/rules/test_killed.py",
    "sink": "tests/agent/test_exports.py",
    "console-before-saw-": "tests/faults/test_journal.py",
    "WaitBegan": "tests/agent/test_incidents.py",
    "WaitEnded": "tests/agent/test_incidents.py",
    "TryFailed": "tests/agent/test_incidents.py",
    "Tuned": "tests/agent/test_tune.py",
    "accept-until": "tests/agent/test_landing_shapes.py",
    "commit-ids": "tests/agent/test_relay.py",
    "second-spark-wrote": "tests/agent/test_second_spark.py",
}
