"""A file divided into chunks that fit a frame: without loss or duplicates, and always at the same places; and its properties."""

import hashlib
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import DataError
from console.model.load import START, chain_of, link
from console.runner.ingest import events as events_module
from console.runner.ingest.events import CHUNK_BYTES, Events, examine

FRAME = 1 << 20
rows = st.lists(
    st.dictionaries(st.sampled_from(["id", "naïve", "p\x00"]), st.text(max_size=30), max_size=3), min_size=1
)


def ndjson(events: list[dict[str, str]], blank: int = 0) -> bytes:
    """One event a line; with `blank`, an empty line before every so many of them."""
    lines = []
    for number, event in enumerate(events):
        lines += [""] * (blank and number % blank == 0) + [json.dumps(event, ensure_ascii=False)]
    return "".join(line + "\n" for line in lines).encode()


def looked_through(data: bytes) -> Events:
    return examine(io.BytesIO(data), "f")


@pytest.mark.slow
@given(rows, st.integers(700, 1200), st.integers(0, 3), st.integers(0, 9))
def test_every_event_is_in_exactly_one_piece_in_order_with_its_line(
    events: list[dict[str, str]], budget: int, blank: int, after: int
) -> None:
    data = ndjson(events, blank)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events_module, "CHUNK_BYTES", budget)
        patch.setattr(events_module, "CHUNK_LINES", 4)
        file = looked_through(data)
        cut = list(file.chunks())
        grown = replace(file, source=io.BytesIO(data + b'{"later": 1}\n'))
        assert cut == list(grown.chunks())
        rest = list(file.chunks(after))
    assert [json.loads(line) for piece in cut for line in piece.events] == events
    assert all(1 <= len(piece.events) <= 4 for piece in cut)
    message = data.decode().split("\n")
    numbers = [line for piece in cut for start, count in piece.at for line in range(start, start + count)]
    assert [message[number - 1].strip() for number in numbers] == [line for piece in cut for line in piece.events]
    assert [line for piece in rest for line in piece.events] == [line for piece in cut for line in piece.events][after:]
    assert [line for piece in rest for start, n in piece.at for line in range(start, start + n)] == numbers[after:]
    assert {piece.at[-1] for piece in rest} <= {piece.at[-1] for piece in cut} | {
        (start + gone, count - gone) for start, count in (piece.at[-1] for piece in cut) for gone in range(1, count)
    }, "a file that goes on is cut at the same places"


@pytest.mark.slow
@given(rows, st.integers(0, 12))
def test_a_chain_does_not_depend_on_where_it_was_cut(events: list[dict[str, str]], after: int) -> None:
    file = looked_through(ndjson(events, 2))
    texts = [json.dumps(event, ensure_ascii=False) for event in events]
    whole, marks = chain_of(START, texts)
    known = file.chains({after, file.count})
    assert known[file.count] == whole
    assert chain_of(known.get(after, whole), texts[after:])[0] == whole
    assert file.marks(after, file.count) == marks[3 * after :]
    assert file.first == link(START, texts[0])


@pytest.mark.slow
def test_a_piece_fits_a_frame_however_its_lines_are_escaped_and_wherever_they_stand() -> None:
    events = [{"payload": '"\\é\U0001f600' * 2000, "n": str(n)} for n in range(60)]
    cut = list(looked_through(ndjson(events)).chunks())
    assert len(cut) > 1
    assert max(len(json.dumps({"lines": piece.events})) for piece in cut) < FRAME - 4096
    assert sum(len(piece.events) for piece in cut) == 60
    short = list(looked_through(b"{}\n\n" * 50_000).chunks())
    assert max(len(json.dumps({"lines": piece.events, "at": piece.at})) for piece in short) < FRAME - 4096


def test_the_batch_is_the_content_and_nothing_else() -> None:
    data = ndjson([{"id": "1"}, {"id": "2"}])
    file = looked_through(data)
    assert (file.batch, file.length, file.count) == (hashlib.sha256(data).hexdigest(), len(data), 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"id": 1}\n[1]\nnot\n', "f:2: no JSON object; f:3: not JSON: .*"),
        (b'{"id": "\xff"}\n', "f:1: not JSON: .*utf-8.*"),
        (b"\n \n", "f: no events"),
        (b"x" * (CHUNK_BYTES + 10), "f:1: longer than .*"),
        (b"[" * 100_000 + b"\n", "f:1: not JSON: .*"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_sent(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        looked_through(data)
