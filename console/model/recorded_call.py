"""Recorded calls of endpoints: as declared in their files, as planned for the gate, and their results."""

from console.record import dataclass

MOST_OF_ENDPOINT = 20  # maximum calls in one file
FILES_FACTOR, BYTES_FACTOR = 2.0, 2.0  # of live's reads, for a call without a budget
FILES_SPARE, BYTES_SPARE = 4, 1 << 20  # always allowed in addition, regardless of the factor


@dataclass(frozen=True, slots=True)
class CallBudget:
    """The maximum that one call of the new release may read; None: derived from live's reads."""

    files: int | None = None
    bytes: int | None = None


NO_BUDGET = CallBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One entry of `endpoints/<name>.calls.yaml`.

    name        unique within the endpoint; never a value of a parameter
    parameters  (name, value as written)
    differs     why its answer may differ after a change of its meaning; "" if it may not
    where       `file:line:column`
    """

    endpoint: str
    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    differs: str = ""
    budget: CallBudget = NO_BUDGET
    where: str = ""


@dataclass(frozen=True, slots=True)
class CallQuery:
    """A call's query in one release.

    sql     compiled, over logical names;  tables  those that it reads
    args    (name, value as text, Spark type)
    """

    sql: str
    tables: tuple[str, ...]
    args: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """Legitimate differences between two answers of one call.

    order      output columns by which the answer is ordered, the leading ones of its ORDER BY
    limited    it has a LIMIT
    volatile   output columns with another value at each run, which are not compared
    estimates  output columns that are estimates: numbers are compared with a tolerance
    doubt      why a different answer may still be correct; "" if it may not
    """

    order: tuple[str, ...] = ()
    limited: bool = False
    volatile: tuple[str, ...] = ()
    estimates: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A call that is run against the live release and the new one.

    live     None if the live release cannot execute it: only the new one is called
    changed  why the plan expects another answer; "" if the change does not affect its meaning
    """

    endpoint: str
    name: str
    new: CallQuery
    live: CallQuery | None
    form: AnswerForm
    changed: str = ""
    differs: str = ""
    budget: CallBudget = NO_BUDGET


@dataclass(frozen=True, slots=True)
class CallCost:
    """The cost of one call. seconds: median of the counted runs; files, bytes: read by the last run"""

    seconds: float
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCall:
    """The result of one call: keys and figures, never a value of a row or a parameter.

    same        whether the answers are equal; None if that could not be decided
    same_cost   the same for files, bytes and time: within the budget, and not slower
    rows_live, rows_new  of the answers;  only_live, only_new  rows that the other answer lacks
    live, new   None if that side did not complete
    runs        counted runs of each side
    why, why_cost  in words, if there is anything to report
    """

    endpoint: str
    name: str
    same: bool | None
    same_cost: bool | None
    rows_live: int = 0
    rows_new: int = 0
    only_live: int = 0
    only_new: int = 0
    live: CallCost | None = None
    new: CallCost | None = None
    runs: int = 0
    why: str = ""
    why_cost: str = ""

    @property
    def failed(self) -> bool:
        return self.same is False or self.same_cost is False
