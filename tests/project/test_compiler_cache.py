"""The compiler cache between runs: a damaged cache is an empty one, never a wrong one."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.model.pipeline import Pipeline
from console.planning import build
from console.planning.cache.queries import QueryMemory
from console.planning.fingerprint import Desired
from console.planning.sql import compile, feed
from console.project.recent import Remembered, remembered
from tests.planning.world import pipeline, with_column, with_sql, with_table

pytestmark = pytest.mark.slow

EDITED = with_column(pipeline(), "agent", "string", "get_json_object(payload, '$.agent')")


def opened(path: Path, mark: str = "one planner") -> Remembered:
    return Remembered(path, lambda: mark)


def made(desired_state: Pipeline, memory: Remembered | None = None) -> Desired:
    return build.compiled(desired_state, QueryMemory(memory))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "compiled.tsv"
    memory = opened(path)
    made(pipeline(), memory)
    memory.save()
    return path


def test_a_warm_memory_gives_what_a_cold_one_computes_and_computes_nothing(warm: Path) -> None:
    memory = opened(warm)
    before = dict(memory)
    assert len(before) > 5
    assert made(pipeline(), memory) == made(pipeline())
    assert dict(memory) == before
    assert warm.stat().st_mode & 0o077 == 0


def test_what_an_edit_touches_is_compiled_anew_and_the_rest_is_remembered(warm: Path) -> None:
    memory = opened(warm)
    before = set(memory)
    assert made(EDITED, memory) == made(EDITED)
    fresh = set(memory) - before
    assert 0 < len(fresh) < len(before)


EDITS = {
    "the query": with_sql(pipeline(), "parse", pipeline().materializations[1].sql.replace("'$.ip'", "'$.addr'")),
    "a source's type": with_table(
        pipeline(),
        replace(
            pipeline().tables[0],
            columns=tuple(
                replace(c, type="timestamp") if c.name == "region" else c for c in pipeline().tables[0].columns
            ),
        ),
    ),
    "the target's type": with_table(
        pipeline(),
        replace(
            pipeline().tables[1],
            columns=tuple(replace(c, type="bigint") if c.name == "status" else c for c in pipeline().tables[1].columns),
        ),
    ),
    "a variable": replace(
        with_sql(pipeline(), "parse", pipeline().materializations[1].sql + " WHERE region <> :home"),
        variables=(("home", "eu"),),
    ),
    "the variable's value": replace(
        with_sql(pipeline(), "parse", pipeline().materializations[1].sql + " WHERE region <> :home"),
        variables=(("home", "us"),),
    ),
    "a parameter's type": replace(
        pipeline(),
        endpoints=tuple(
            replace(e, parameters=tuple(replace(p, type="timestamp") for p in e.parameters))
            for e in pipeline().endpoints
        ),
    ),
}


def test_one_memory_serves_every_edit_and_confuses_none(warm: Path, tmp_path: Path) -> None:
    path = tmp_path / "compiled.tsv"
    path.write_bytes(warm.read_bytes())
    for name, edit in EDITS.items():
        memory = opened(path)
        assert made(edit, memory) == made(edit), name
        memory.save()
    for name, edit in EDITS.items():
        assert made(edit, opened(path)) == made(edit), name


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["cut", "flip", "insert", "swap"]), st.integers(1, 255)),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_memory_is_never_a_wrong_one(
    warm: Path, tmp_path: Path, damage: list[tuple[float, str, int]]
) -> None:
    data = warm.read_bytes()
    for at, how, by in damage:
        place = int(at * (len(data) - 1))
        if how == "cut":
            data = data[: max(place, 1)]
        elif how == "flip":
            data = data[:place] + bytes([data[place] ^ by]) + data[place + 1 :]
        elif how == "insert":
            data = data[:place] + bytes([by]) + data[place:]
        else:  # the entries of two keys change places, each whole
            lines = [line.split(b"\t") for line in data.split(b"\n")]
            pairs = [i for i, line in enumerate(lines) if len(line) == 2]
            if len(pairs) > 1:
                a, b = pairs[by % len(pairs)], pairs[(by + 1) % len(pairs)]
                lines[a][1], lines[b][1] = lines[b][1], lines[a][1]
            data = b"\n".join(b"\t".join(line) for line in lines)
    path = tmp_path / "compiled.tsv"
    path.write_bytes(data)
    assert made(pipeline(), opened(path)) == made(pipeline())


def test_an_entry_that_carries_its_checksum_and_has_no_shape_is_a_miss(warm: Path) -> None:
    from console.planning.cache.queries import _hash

    memory = opened(warm)
    for key in list(memory):
        for lie in ("null", "[]", "{}", "3", "not JSON"):
            memory[key] = _hash(key, lie)[:16] + lie
        assert made(pipeline(), memory) == made(pipeline())


def test_another_planner_starts_cold_and_a_missing_place_is_no_error(warm: Path, tmp_path: Path) -> None:
    assert len(opened(warm, "another planner")) == 0
    lost = opened(tmp_path / "nowhere" / "compiled.tsv")
    assert made(pipeline(), lost) == made(pipeline())
    lost.save()
    assert not (tmp_path / "nowhere").exists()


def test_it_lies_in_the_cache_and_survives_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSOLE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with remembered() as memory:
        made(pipeline(), memory)
    assert (tmp_path / "console" / "compiled.tsv").is_file()
    with remembered() as memory:
        assert len(memory) > 5


def test_a_warm_memory_is_read_and_nothing_is_compiled(warm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: object) -> None:
        raise AssertionError("compiled although the memory holds it")

    for module, names in ((compile, ("reads", "query", "resolve_names")), (feed, ("resolve", "evaluate"))):
        for name in names:
            monkeypatch.setattr(module, name, compiled)
    assert made(pipeline(), opened(warm)).problems == ()
