"""Names of feeds in the logs of their targets, and the numbers committed under them: an epoch and a position in one."""

from console.agent.store import open_tables
from console.model.live import Feed

EPOCH_BITS = 40
POSITION_MASK = (1 << EPOCH_BITS) - 1


def live_id(target: str, feed: Feed, source: str = "") -> str:
    """App id of a live feed. Positions in two versions of a source are two feeds, so a moved feed's id names its source.

    source  absolute path of the source version; needed for a moved feed
    """
    return _live_id(open_tables.table_id(target), feed, source)


def _live_id(target_id: str, feed: Feed, source: str) -> str:
    own = f"live/{target_id}/{feed.materialization}"
    return f"{own}/{open_tables.table_id(source)}" if feed.moved else own


def is_live_id(app_id: str, feed: Feed) -> bool:
    """Whether an id is a live feed's, whatever its target; never so of a moved feed, whose id names a source."""
    kind, _, rest = app_id.partition("/")
    return kind == "live" and rest.partition("/")[2] == feed.materialization


def live_number(target: str, feed: Feed, source: str = "") -> int | None:
    """The number last committed by a live feed, or None; the target, whose log may be long, is opened once.

    source  as of `live_id`
    """
    with open_tables.opened(target) as opened:
        committed: int | None = opened.transaction_version(_live_id(str(opened.metadata().id), feed, source))
    return committed


def history_id(target: str, materialization: str, fence: int) -> str:
    return f"history/{open_tables.table_id(target)}/{materialization}@{fence}"


def number(epoch: int, position: int) -> int:
    """As committed under a feed's id: with a later epoch it is greater, whatever the position."""
    return epoch << EPOCH_BITS | position


def split(number: int) -> tuple[int, int]:
    """Epoch and position of a committed number."""
    return number >> EPOCH_BITS, number & POSITION_MASK
