"""What rollouts cost, as measured: the record from which docs/scale.md is computed, and how its figures follow from runs. Pure."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

UNKNOWNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRun:
    """One rollout that rebuilds one table, in a JVM that has run others. Processor seconds are of the whole process tree.

    rows, batches      of its history
    seconds            processor seconds from its acceptance to its gate
    batch_clock        seconds by the clock, of all batches
    landing_bytes      read: the data files of the landing table
    written, files     bytes and data files of the new version
    commits, log_bytes of the new version's log: its versions, and the bytes of their JSON
    stored_bytes       by which the region's own tables have grown
    """

    rows: int
    batches: int
    seconds: float
    batch_clock: float
    landing_bytes: int
    written: int
    files: int
    days: int
    commits: int
    log_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRun:
    """One survey of a table. memory: bytes of its process at most"""

    files: int
    seconds: float
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCosts:
    """
    row_seconds, batch_seconds, rollout_seconds  processor seconds: of each row, of each batch, and of a rollout of one table beside
                        these; receipts and the gate's comparison included
    landing_row_bytes, written_row_bytes  in data files
    commits             of a new version beside its batches'
    commit_bytes, file_bytes  of a log: of each commit, and of each file in it
    files_a_day         data files of a day, which is in one batch
    batch_bytes         of the region's own tables, for each batch
    survey_file_seconds, survey_file_bytes  processor time and memory of a survey, for each data file
    tasks               of a build at once, with which it was measured
    """

    row_seconds: float
    batch_seconds: float
    rollout_seconds: float
    landing_row_bytes: float
    written_row_bytes: float
    commits: float
    commit_bytes: float
    file_bytes: float
    files_a_day: float
    batch_bytes: float
    survey_file_seconds: float
    survey_file_bytes: float
    tasks: int

    def seconds(self, rows: float, batches: float) -> float:
        """Processor seconds of a rollout that rebuilds one table."""
        return self.rollout_seconds + self.batch_seconds * batches + self.row_seconds * rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRecord:
    """The costs, and of which runs. at, commit: of the measuring;  machine: its processor and what ran on it"""

    at: str
    commit: str
    machine: str
    runs: tuple[ScaleRun, ...]
    costs: ScaleCosts

    @classmethod
    def read(cls, path: Path) -> "ScaleRecord":
        data = json.loads(path.read_text())
        runs = tuple(ScaleRun(**run) for run in data.pop("runs"))
        return cls(**{**data, "runs": runs, "costs": ScaleCosts(**data["costs"])})

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def fitted(runs: Sequence[ScaleRun], surveys: Sequence[SurveyRun], tasks: int) -> ScaleCosts:
    """The costs that fit the runs best, by least squares; none is below zero.

    runs     of at least two numbers of rows, and of batches with one of them
    surveys  two, of tables with a different number of files
    """
    rollout, batch, row = _least_squares(
        [(1.0, float(run.batches), float(run.rows)) for run in runs], [run.seconds for run in runs]
    )
    few, many = surveys
    more = many.files - few.files
    rows = sum(run.rows for run in runs)
    commit_bytes, file_bytes, _ = _least_squares(
        [(float(run.commits), float(run.files), 0.0) for run in runs], [float(run.log_bytes) for run in runs]
    )
    batch_bytes = _least_squares(
        [(1.0, float(run.batches), 0.0) for run in runs], [float(run.stored_bytes) for run in runs]
    )[1]
    return ScaleCosts(
        row_seconds=row,
        batch_seconds=batch,
        rollout_seconds=rollout,
        landing_row_bytes=sum(run.landing_bytes for run in runs) / rows,
        written_row_bytes=sum(run.written for run in runs) / rows,
        commits=statistics.mean(run.commits - run.batches for run in runs),
        commit_bytes=commit_bytes,
        file_bytes=file_bytes,
        files_a_day=statistics.mean(run.files / run.days for run in runs),
        batch_bytes=batch_bytes,
        survey_file_seconds=max(0.0, (many.seconds - few.seconds) / more),
        survey_file_bytes=max(0.0, (many.memory - few.memory) / more),
        tasks=tasks,
    )  # fmt: skip


def _least_squares(rows: Sequence[tuple[float, float, float]], wanted: Sequence[float]) -> tuple[float, float, float]:
    """The three coefficients, each at least 0: one that would be negative is left out, and the others fit alone."""
    used = [at for at in range(UNKNOWNS) if any(row[at] for row in rows)]
    while True:
        found = _normal(rows, wanted, used)
        negative = [at for at, value in zip(used, found, strict=True) if value < 0]
        if not negative:
            values = dict(zip(used, found, strict=True))
            return values.get(0, 0.0), values.get(1, 0.0), values.get(2, 0.0)
        used.remove(negative[0])


def _normal(rows: Sequence[tuple[float, float, float]], wanted: Sequence[float], used: Sequence[int]) -> list[float]:
    """The solution of the normal equations, in these unknowns."""
    scale = [max(abs(row[at]) for row in rows) for at in used]
    scaled = [[row[at] / size for at, size in zip(used, scale, strict=True)] for row in rows]
    matrix = [
        [sum(row[i] * row[j] for row in scaled) for j in range(len(used))]
        + [sum(row[i] * y for row, y in zip(scaled, wanted, strict=True))]
        for i in range(len(used))
    ]
    for i in range(len(used)):
        pivot = max(range(i, len(used)), key=lambda at: abs(matrix[at][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for other in range(len(used)):
            if other != i:
                factor = matrix[other][i] / matrix[i][i]
                matrix[other] = [a - factor * b for a, b in zip(matrix[other], matrix[i], strict=True)]
    return [matrix[i][-1] / matrix[i][i] / scale[i] for i in range(len(used))]
