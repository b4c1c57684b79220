"""Files of tables that keep one row of each key: how they are read, and their mistakes."""

import pytest
from conftest import Write

from console.errors import Problems
from console.model.schema import Table
from console.project import load

PLACE = "plans/web/tables/requests.yaml"
COLUMNS = "columns: {event_id: string, ts: timestamp, day: date, tags: string}\n"
LATEST = f"{COLUMNS}kind: latest\nkey: [event_id]\norder_by: [ts]\n"


def table(project: Write, text: str) -> Table:
    loaded = load(project({PLACE: text}))
    result = loaded.pipeline("web", loaded.region("eu")).table("requests")
    assert result is not None
    return result


def test_its_kind_is_append_with_a_key_and_an_order(project: Write) -> None:
    result = table(project, LATEST)
    assert (result.kind, result.key, result.order_by, result.kind_word) == ("append", ("event_id",), ("ts",), "latest")


def test_distinct_rows_are_all_key(project: Write) -> None:
    result = table(project, f"{COLUMNS}kind: distinct\npartition_by: [day]\nretention: 3d\n")
    assert (result.key, result.order_by) == (("event_id", "ts", "day", "tags"), ())
    assert (result.kind_word, result.is_distinct, result.partition_by) == ("distinct", True, ("day",))


MISTAKES = {
    f"{COLUMNS}kind: latest\nkey: [event_id]": "order_by: a table of kind latest needs it",
    f"{COLUMNS}kind: latest\norder_by: [ts]": "key: a table of kind latest needs it",
    f"{COLUMNS}key: [event_id]": "key: only a table of kind latest has one",
    f"{COLUMNS}kind: distinct\norder_by: [ts]": "order_by: only a table of kind latest has one",
    LATEST.replace("[event_id]", "[event_it]"): "key: requests has no column `event_it`",
    LATEST.replace("[ts]", "[ts, ts]"): "order_by: `ts` occurs twice",
    f"{LATEST}partition_by: [day]": "partition_by: `day` is not part of the key",
    f"{LATEST}retention: 3d\ntime: day": "retention: it would delete the newest row of a key before older ones",
    LATEST.replace("tags: string", "tags: 'map<string,string>'"): "columns: `tags` is map<string,string>",
    LATEST.replace("tags: string", "_row_hash: bigint"): "columns: `_row_hash` is reserved for the place of a row",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_reported(project: Write, text: str) -> None:
    with pytest.raises(Problems) as error:
        load(project({PLACE: text}))
    own = [problem for problem in error.value.problems if problem.where.startswith(PLACE)]
    assert own[0].message.startswith(MISTAKES[text]), own
    assert own[0].hint
