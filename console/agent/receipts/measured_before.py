"""Sums of a table that an earlier step of the rollout has measured as its target: a table below it has the same rows as its source.

To read them again cost as much as the rest of the receipts (docs/decisions/0033). Sums of disjoint rows add up: only rows that were
committed in between are read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.agent.feeds.checksum import Sum
from console.agent.store import log
from console.model.receipt import Place, Receipt


@dataclass(frozen=True, slots=True)
class MeasuredBefore:
    """sums: day → sum, as of a version of the table;  files: added by later commits, whose rows are not in them"""

    sums: dict[str, Sum]
    files: tuple[log.AddedFile, ...]


def measured_before(receipts: Iterable[Receipt], place: Place, path: str) -> MeasuredBefore | None:
    """What is known of a place from the receipts of other steps; None if it has to be read as a whole.

    path    of its table, absolute
    raises  RegionError if its log no longer has the commits in between
    """
    own = [receipt for receipt in receipts if receipt.how is not None and _same_rows(receipt.how.target, place)]
    version = max((receipt.version for receipt in own), default=-1)
    if version < 0:
        return None
    commits = tuple(log.commits(path, version + 1, place.version))
    if not all(_only_adds(commit) for commit in commits):
        return None
    last = [receipt for receipt in own if receipt.version == version]
    return MeasuredBefore(_sums(last), tuple(file for commit in commits for file in commit.added))


def _same_rows(target: Place, place: Place) -> bool:
    """Whether a step's target is a whole table as of a version at or before a place, summed by the same definition."""
    whole = target.before < 0 and place.before < 0 and not (target.feed or place.feed)
    one = (target.path, target.id, target.time, target.columns) == (place.path, place.id, place.time, place.columns)
    return whole and one and target.version <= place.version


def _only_adds(commit: log.Commit) -> bool:
    """Whether all rows of before are still there, as they were: compaction moves them, and a merge of states makes others of them."""
    return commit.kind != "rewrite" and commit.note.get("kind") != log.MERGE


def _sums(receipts: Sequence[Receipt]) -> dict[str, Sum]:
    return {r.day: Sum.of(r.rows_out, r.checksum_out) for r in receipts if r.rows_out}
