"""Ids of a plan's steps, as in plans and events: `backfill/requests/parse_requests`, `validate`."""

from typing import Final

from console.record import dataclass


@dataclass(frozen=True, slots=True)
class StepId:
    """The parts of a step's id.

    kind             create, alter, backfill, catch-up, validate or promote; newer agents may have others
    table            logical name of its table, "" for a step on the whole release
    materialization  of one feed, "" for a step on the whole table
    """

    kind: str
    table: str = ""
    materialization: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.table, self.materialization) if part)

    @classmethod
    def parse(cls, text: str) -> "StepId":
        """Parse any text as an id: one without a slash is only a kind."""
        kind, _, rest = text.partition("/")
        table, _, materialization = rest.partition("/")
        return cls(kind, table, materialization)

    @property
    def subject(self) -> str:
        """The table, or the kind of a step on the whole release."""
        return self.table or self.kind


BACKFILL: Final = "backfill"  # kind of the steps that copy history, the only ones with slices
CATCH_UP: Final = "catch-up"  # kind of the steps that open a live feed and move it to the end of its source
VALIDATE: Final = StepId("validate")
PROMOTE: Final = StepId("promote")
