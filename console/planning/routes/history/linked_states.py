"""Partial states of an aggregate whose files are taken over (`history: from now`): under which names they are stored.

The files keep the names of the live version's states. A renamed measure goes on under its first name; the states of one that is
dropped stay in the files, and later rows hold NULL, which every merge ignores.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.model.live import Feed
from console.model.schema import Column
from console.planning.fingerprint import DesiredTable
from console.planning.routes.change import Change
from console.planning.routes.history.carried import kept_places
from console.planning.sql.tree import DIALECT, cast, name, render


@dataclass(frozen=True, slots=True)
class LinkedStates:
    """places: state → where it is stored, two of one meaning in one place;  gone: stored states that later rows do not fill"""

    places: Mapping[str, str]
    gone: tuple[Column, ...]

    def stored(self, wanted: DesiredTable) -> DesiredTable:
        """The same table with these stored columns, and feeds that fill them."""
        if not self.gone and all(state == place for state, place in self.places.items()):
            return wanted
        own = {self.places[state.name]: state for state in wanted.columns}
        stored = [replace(state, name=place) for place, state in own.items()]
        gone = [replace(state, nullable=True) for state in self.gone]
        feeds = tuple(self._into(feed) for feed in wanted.feeds)
        # states that later rows lack are not merged with theirs: that nothing is lost would need a merge of its own
        return replace(wanted, columns=(*stored, *gone), feeds=feeds, read=self._over(wanted.read), merging=None)

    def _into(self, feed: Feed) -> Feed:
        tree = sqlglot.parse_one(feed.sql, read=DIALECT)
        own = {self.places[part.alias_or_name]: part.unalias() for part in tree.expressions}
        gone = {state.name: exp.AnyValue(this=cast(exp.null(), state.type)) for state in self.gone}
        tree.set("expressions", [exp.alias_(value, name(place)) for place, value in (own | gone).items()])
        terms = feed.terms and replace(
            feed.terms, sketches=self._named(feed.terms.sketches), volatile=self._named(feed.terms.volatile),
            moments=self._named(feed.terms.moments),
        )  # fmt: skip
        return replace(feed, sql=render(tree), terms=terms)

    def _named(self, states: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.places[state] for state in states))

    def _over(self, read: str) -> str:
        tree = sqlglot.parse_one(read, read=DIALECT)
        for column in list(tree.find_all(exp.Column)):
            if column.name in self.places:
                column.set("this", name(self.places[column.name]))
        return render(tree)


def linked_states(change: Change) -> LinkedStates | str:
    """The stored states of an aggregate, or why its files cannot be read as they are."""
    wanted, live, kept = change.wanted, change.live, kept_places(change)
    places = {state.name: kept.get(state.name.lower(), state.name) for state in wanted.columns}
    stored = {state.name.lower() for state in live.version.columns}
    if taken := [state for state in places if state.lower() not in kept and state.lower() in stored]:
        return f"another column is stored as {taken[0]} in its files"
    sums = {state for feed in wanted.feeds if feed.terms for state in feed.terms.sums}
    if moved := [state for state, place in places.items() if state != place and state in sums]:
        return f"{moved[0]} is a sum of doubles, which is compared under the name that it is stored by"
    gone = tuple(state for state in live.version.columns if state.name not in places.values())
    return LinkedStates(places, gone)
