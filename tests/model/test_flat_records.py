"""Records of texts and numbers alone are read in a shorter way than others: to the same values and the same refusals."""

import dataclasses
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from console.errors import ConsoleError
from console.model import beside, codec
from console.model.live import Day


@dataclasses.dataclass(frozen=True)
class Reading:
    """With a default, a truth value and a number that may be written without a fraction."""

    name: str
    share: float
    sure: bool = True


VALUES = (
    st.none() | st.booleans() | st.integers(-3, 1 << 70) | st.floats(allow_nan=False) | st.text(max_size=3)
    | st.sampled_from(["\ud800", "é", "Day", "Reading", [], {}])
)  # fmt: skip
KEYS = st.sampled_from(["type", "day", "rows", "bytes", "exact", "name", "share", "sure", "rows!0.9.0", "more"])
WRITTEN = st.builds(Day, st.text(max_size=4), st.integers(), st.integers(), st.booleans()) | st.builds(
    Reading, st.text(max_size=4), st.floats(allow_nan=False) | st.integers(), st.booleans()
)


def read(cls: Any, data: Any, exact: bool) -> Any:
    try:
        return codec.decode(cls, data, exact=exact)
    except ConsoleError as error:
        return type(error), str(error)


@example([Day("d", 1, 2)], [("day", "\ud800")], set(), False)
@example([Day("d", 1, 2)], [("more", 1)], set(), True)
@given(
    st.lists(WRITTEN, max_size=3),
    st.lists(st.tuples(KEYS, VALUES), max_size=2),
    st.sets(KEYS, max_size=1),
    st.booleans(),
)
def test_whatever_is_written_is_read_as_every_other_record(
    records: list[Any], added: list[tuple[str, Any]], left_out: set[str], exact: bool
) -> None:
    data = [codec.encode(record) for record in records]
    for entry in data[-1:]:
        entry.update(added)
        for key in left_out:
            entry.pop(key, None)
    for kind, kinds in ((Day, tuple[Day, ...]), (Reading, tuple[Reading, ...])):
        assert codec._flat(kind) is not None
        in_a_list = read(kinds, data, exact)
        one_by_one = [read(kind, entry, exact) for entry in data]
        refused = next((value for value in one_by_one if isinstance(value, tuple)), None)
        if refused is None:
            assert in_a_list == tuple(one_by_one)
            assert [[type(v) for v in vars_of(r)] for r in in_a_list] == [
                [type(v) for v in vars_of(r)] for r in one_by_one
            ]
        else:
            assert in_a_list[0] is refused[0]
            assert in_a_list[1].partition("]")[2].partition(":")[2] == refused[1].partition(":")[2]


@dataclasses.dataclass(frozen=True)
class Weighed:
    """With a field that is stored beside it, and left out at its default."""

    name: str
    weight: int = dataclasses.field(default=0, metadata=codec.BESIDE)


@given(st.lists(WRITTEN | st.builds(Weighed, st.text(max_size=2), st.integers(0, 1)), max_size=4))
def test_a_list_of_them_is_written_as_each_by_itself(records: list[Any]) -> None:
    written, alone = codec.encode(records), [codec.encode(record) for record in records]
    assert [list(data.items()) for data in written] == [list(data.items()) for data in alone]
    heavy = [place for place, record in enumerate(records) if isinstance(record, Weighed) and record.weight]
    kept, rest = beside.split(records)
    assert rest == [([place, "weight"], 1) for place in heavy]
    assert beside.join(kept, rest) == written


def test_days_are_written_and_searched_in_the_short_way() -> None:
    assert codec._flat_writer(Day) is not None
    assert beside._is_whole(Day)
    assert codec._flat_writer(Weighed) is None
    assert not beside._is_whole(Weighed)


def vars_of(record: Any) -> list[Any]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)]
