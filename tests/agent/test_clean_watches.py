"""A clean rollout counts only if its watch has made every check."""

import pytest

from console.agent.soak.watch_checks import watch_checks
from console.model.event import Checked
from tests.agent.watched_rollouts import Looks

KINDS = tuple(kind.name for kind in watch_checks())


def ran(looks: Looks, kind: str, ok: bool | None = True, rows: int = 3) -> None:
    looks.noted("web", kind, Checked(table="requests", check="feed parse: live rows", ok=True, detail="", rows=rows))
    looks.noted("web", kind, Checked(table="watch", check=kind, ok=ok, detail=""))


def test_a_watch_in_which_every_kind_of_check_was_completed_proves_something() -> None:
    looks = Looks()
    for kind in KINDS:
        assert not looks.proven("web")
        ran(looks, kind)
    assert looks.proven("web")
    assert not looks.proven("shop")
    looks.forget("web")
    assert not looks.proven("web")


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_that_was_not_completed_proves_nothing(kind: str) -> None:
    looks = Looks()
    for each in KINDS:
        ran(looks, each, ok=None if each == kind else True)
    assert not looks.proven("web")


def test_a_watch_without_arriving_rows_proves_nothing() -> None:
    looks = Looks()
    for kind in KINDS:
        ran(looks, kind, rows=0)
    assert not looks.proven("web")
