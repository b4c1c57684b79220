"""The progress of one step of a rollout, as a part of its status."""

from dataclasses import field
from typing import Literal

from console.model.codec import BESIDE
from console.model.measured import SparkJob
from console.model.share import progress_percent
from console.model.step_id import CATCH_UP, StepId
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    """One step's progress. rows_total is an estimate until the fence is taken.

    rows_done   of finished batches, as counted by their receipts; the running batch's estimate, batch_rows, is not in it
    planned     rows as estimated by the plan; 0 for a step that reads no history
    tries       failed tries of its batches
    job         of the running batch, as last reported
    """

    id: str
    state: Literal["waiting", "running", "done"] = "waiting"
    rows_done: int = 0
    rows_total: int = 0
    slices_done: int = 0
    slices: int = 0
    batch: str = ""  # label of the running batch
    batch_rows: int = 0  # rows of the running batch so far
    seconds: float = 0.0  # spent in finished batches
    bytes: int = 0
    planned: int = field(default=0, metadata=BESIDE)
    tries: int = field(default=0, metadata=BESIDE)
    job: SparkJob | None = field(default=None, metadata=BESIDE)

    @property
    def history(self) -> bool:
        """Whether it copies history, in batches with receipts."""
        return bool(self.slices or self.planned)

    @property
    def closes(self) -> bool:
        """Whether its end is one of those that make the rollout's 100 %."""
        return self.history or StepId.parse(self.id).kind == CATCH_UP

    @property
    def percent(self) -> int:
        """The completed part in whole percent; 100 only once it has ended, since its rows may be complete earlier."""
        return 100 if self.state == "done" else min(99, progress_percent(self.fraction))

    @property
    def fraction(self) -> float:
        """The completed part, 0…1; never falls."""
        if self.state == "done":
            return 1.0
        if self.slices and self.rows_total:
            return min(1.0, self.rows_done / self.rows_total)
        return min(1.0, self.slices_done / self.slices) if self.slices else 0.0
