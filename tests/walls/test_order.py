"""What takes longest starts first: a name that has moved would be passed over without a word."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import LONGEST, UNDER_FIRE, pytest_xdist_make_scheduler, scope_of, turn

ROOT = Path(__file__).parents[2]


def test_each_scope_that_starts_first_is_a_file_or_a_group_of_files() -> None:
    files = (*UNDER_FIRE, *(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")))
    assert {*LONGEST} - {scope_of(f"{file}::test") for file in files} == set()


def test_it_starts_before_all_others() -> None:
    first, other = (turn(f"{file}::test") for file in ("tests/faults/test_points.py", "tests/agent/test_hold.py"))
    assert (first, other) == (0, len(LONGEST))


class Worker:
    """What the scheduler asks of one; it begins a test only when it knows the one after it, or that there is none."""

    shutting_down, gateway = False, SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_a_worker_is_given_no_test_that_another_could_begin() -> None:
    three, *others = (f"tests/test_{n}.py::test" for n in range(9))
    tests = [f"{three}_{n}" for n in range(3)] + others
    config: Any = SimpleNamespace(
        option=SimpleNamespace(), getoption=lambda _: "loadscope", getvalue=lambda _: ["2*popen"]
    )
    plan = pytest_xdist_make_scheduler(config, SimpleNamespace(loadscopesched=lambda *_: None))
    busy, free = workers = Worker(), Worker()
    for worker in workers:
        plan.add_node(worker)
        plan.add_node_collection(worker, tests)
    plan.schedule()
    for index in (0, 1):
        plan.mark_test_complete(busy, index)  # and its third test takes as long as all others together
    done = 0
    while free.shutting_down * len(free.given) > done or len(free.given) > done + 1:
        plan.mark_test_complete(free, free.given[done])
        done += 1
    assert sorted([*busy.given, *free.given]) == [*range(len(tests))]
    assert len(busy.given) == len((0, 1, 2)) + 1
