"""A file cut into what fits a frame: nothing lost, nothing twice, and always cut the same."""

import hashlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli.commands import feeding
from console.errors import DataError

FRAME = 1 << 20
events = st.lists(st.dictionaries(st.sampled_from(["id", "naïve", "p\x00"]), st.text(max_size=30), max_size=3))


def ndjson(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@given(events, st.integers(200, 400))
def test_every_event_is_in_exactly_one_chunk_in_order(rows: list[dict[str, str]], budget: int) -> None:
    data = b"\n" + ndjson(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeding, "CHUNK_BYTES", budget)
        patch.setattr(feeding, "CHUNK_LINES", 4)
        cut = list(feeding.chunks(io.BytesIO(data), len(data)))
        assert cut == list(feeding.chunks(io.BytesIO(data + b'{"later": 1}\n'), len(data)))
    assert [json.loads(line) for run in cut for line in run] == rows
    assert all(1 <= len(run) <= 4 for run in cut)


def test_a_chunk_fits_a_frame_however_its_lines_are_escaped() -> None:
    rows = [{"payload": '"\\é\U0001f600' * 2000, "n": str(n)} for n in range(60)]
    data = ndjson(rows)
    cut = list(feeding.chunks(io.BytesIO(data), len(data)))
    assert len(cut) > 1
    assert max(len(json.dumps({"lines": run})) for run in cut) < FRAME - 4096
    assert sum(map(len, cut)) == 60


def test_the_batch_is_the_content_and_nothing_else() -> None:
    data = ndjson([{"id": "1"}, {"id": "2"}])
    assert feeding.examine(io.BytesIO(data), "a") == (hashlib.sha256(data).hexdigest(), len(data), 2)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"id": 1}\n[1]\nnot\n', "f:2: no JSON object; f:3: not JSON: .*"),
        (b'{"id": "\xff"}\n', "f:1: not JSON: .*utf-8.*"),
        (b"\n \n", "f: no events"),
        (b"x" * (feeding.CHUNK_BYTES + 10), "f:1: longer than .*"),
        (b"[" * 100_000 + b"\n", "f:1: not JSON: .*"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_sent(data: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said):
        feeding.examine(io.BytesIO(data), "f")
