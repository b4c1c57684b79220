"""The wheel in an environment of its own, without a network: it plans without Spark, and with it promotes a region."""

import ast
import json
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from console import paths
from console.agent.spark_process import BRIEF
from tests.installed.place import Place, build, texts


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_the_planning_half_works_without_spark_and_says_what_needs_it(wheel: Path, tmp_path: Path) -> None:
    place = Place.of(wheel, tmp_path)
    for words in (["init"], ["check"], ["plan"], ["status"], ["doctor"], ["info"], ["schema", "--help"]):
        done = place.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert "pipeline-console[agent]" in place.run("doctor").stdout
    assert place.run("plan").stdout.splitlines()[-1] == "Plan: 1 region, 4 create"
    (place.folder / "a.sql").write_text("SELECT id FROM landing WHERE id > '1' AND id > '0'")
    (place.folder / "b.sql").write_text("SELECT id FROM landing WHERE id > '1'")
    compared = place.run("compare", "a.sql", "b.sql")
    assert compared.returncode in (0, 2), compared.stderr
    for words in (
        ["apply", "--yes"],
        ["follow", "--region", "local"],
        ["demo", "--headless", "--project", "demo"],
        ["setup"],
    ):
        done = place.run(*words)
        assert done.returncode == 1, (words, done.stdout, done.stderr)
        assert f"{place.python} -m pip install 'pipeline-console[agent]'" in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr
    assert place.run("follow", "--region", "local").stdout == ""


def smaller(project: Path) -> None:
    """What is not looked at here left out, and a JVM that compiles for minutes, not for years."""
    for name in ("tables/events_by_hour.yaml", "materializations/events_by_hour.sql"):
        (project / "plans" / "events" / name).unlink()
    file = project / "regions" / "local.yaml"
    settings = f'spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{BRIEF}"}}}}'
    file.write_text(file.read_text().replace('spark: {master: "local[2]"}', settings))
    assert BRIEF in file.read_text()


@pytest.mark.spark
@pytest.mark.parametrize("words", [("--no-archive",), pytest.param((), marks=pytest.mark.soak)])
def test_an_installed_console_promotes_a_region_without_a_network(
    wheel: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    place = replace(Place.of(wheel, tmp_path, "agent"), offline=True)
    begun = place.run("setup", "--from", str(paths.jars_dir()), *words)
    assert begun.returncode == 0, begun.stderr
    assert bool([*tmp_path.rglob("classes.jsa")]) is not bool(words), begun.stderr
    assert place.run("init").returncode == 0
    smaller(place.folder)
    try:
        done = place.run("apply", "--yes")
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("local   live\n")
        assert place.run("ingest", "events.ndjson", "--region", "local").stdout == "landing: 3 rows added\n"
        until, rows = time.monotonic() + 60, []
        while len(rows) < 3 and time.monotonic() < until:
            answer = place.run("query", "SELECT event_id, value FROM events ORDER BY event_id", "--output", "json")
            rows = json.loads(answer.stdout)["rows"]
        assert rows == [{"event_id": n, "value": v} for n, v in (("1", 12.5), ("2", 3.0), ("3", -3.0))]
    finally:
        place.run("follow", "--region", "local", "--stop")


@pytest.mark.slow
def test_no_message_of_an_installed_console_names_make(wheel: Path) -> None:
    targets = re.compile(r"\bmake (setup|schema|python|demo|check|lint|test|clean)\b")
    results = []
    for name, text in texts(wheel):
        strings = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        results += [
            f"{name}: {node.value}" for node in strings if isinstance(node.value, str) and targets.search(node.value)
        ]
    assert results == []


@pytest.mark.slow
def test_the_wheel_carries_what_an_empty_folder_needs(wheel: Path, tmp_path: Path) -> None:
    place = Place.of(wheel, tmp_path)
    script = (
        "from pathlib import Path; from console.demo.folder import project_root; from console.demo.prepare import Demo;"
        "print(*(region.name for region in Demo.of(project_root(Path('new'))).regions))"
    )
    done = subprocess.run(
        [str(place.python), "-P", "-c", script], cwd=place.folder, capture_output=True, text=True, check=False
    )
    assert done.stdout == "us ap eu\n", done.stderr
