"""Recorded calls of endpoints: as their files declare them, as a plan has them run at the gate, and what came of it."""

from console.record import dataclass

MOST_OF_ENDPOINT = 20  # calls that one file may hold
FILES_FACTOR, BYTES_FACTOR = 2.0, 2.0  # of what live reads, where a call declares no budget
FILES_SPARE, BYTES_SPARE = 4, 1 << 20  # that a call may read more, whatever the factor


@dataclass(frozen=True, slots=True)
class CallBudget:
    """The most that one call of the new release may read; None: what live reads decides."""

    files: int | None = None
    bytes: int | None = None


NO_BUDGET = CallBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One entry of `endpoints/<name>.calls.yaml`.

    name        tells the endpoint's calls apart; never a value of a parameter
    parameters  (name, value as written)
    differs     why its answer may be another one after a change of what it means; "" where it may not
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
    """What may differ between two answers of one query to one call.

    order      output columns by which the answer is ordered, the first ones of its ORDER BY
    limited    it ends after some rows
    volatile   output columns that are another value each time: they are not compared
    estimates  output columns that are estimates: numbers are compared with a tolerance
    doubt      why another answer may be right all the same; "" where it may not
    """

    order: tuple[str, ...] = ()
    limited: bool = False
    volatile: tuple[str, ...] = ()
    estimates: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A call that is run against the live release and the new one.

    live     None where the live release cannot take it: the new one alone is called
    changed  why the plan expects another answer; "" where the change leaves its meaning alone
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
    """What one call cost. seconds: median of the runs that count; files, bytes: read by one run, of the last one"""

    seconds: float
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCall:
    """What came of one call: keys and figures, never a value of a row or of a parameter.

    same        whether the answers are equal; None where that could not be decided
    same_cost   the same of files, bytes and time: within the budget, and not slower
    rows_live, rows_new  of the answers;  only_live, only_new  rows that the other answer lacks
    live, new   None where that side was not run to its end
    runs        that count, of each side
    why, why_cost  in words, where there is something to say
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
