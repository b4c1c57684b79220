"""S1–S3: no name, day or parameter changes what a query does, and no query reaches beyond the pipeline's tables."""

import itertools
import re
import time

import pytest
import sqlglot
from sqlglot import exp

from console.cli.commands.query import guessed_type, typed
from console.errors import Problems, UsageError
from console.model.live import Day, Live, TableStats
from console.model.pipeline import Parameter
from console.model.schema import Column
from console.model.step import Backfill
from console.planning import compile_query, plan
from console.project import load
from tests.cli.conftest import CHANGE, FILES, World, _live
from tests.planning.test_allow import HOSTILE
from tests.planning.world import live, release

pytestmark = pytest.mark.slow

INJECTIONS = (
    "a`; DROP TABLE requests; --", "a' OR '1'='1", 'a" OR "1"="1', "a\\' OR 1=1 --", "a\n; DROP TABLE requests", "a/**/UNION/**/SELECT/**/1",
    "2024-01-01' OR '1'='1", "2024-13-01", "2024-02-30", "'; DROP TABLE requests; --", "1; DROP TABLE requests", "1 OR 1=1", "$(id)", "`id`",
    "${env:HOME}", ":day", "?", "{{day}}", "%27", "0x27", "ʼ OR 1=1", "＇ OR 1=1", "\u202e", "a\x00b", "delta.`/etc`", "..", "-", "*", "eu;rm -rf",
)  # fmt: skip
NAMES = (
    "a`; DROP TABLE x; --",
    "a'",
    'a"',
    "a\nb",
    "a\x00",
    "x" * 300,
    "аdmin",
    "ａ",
    "\u202ea",
    "delta.x",
    "..",
    "a/b",
    "-a",
    "",
    " ",
    "A",
    "1a",
)
# what a foreign table may well have: the name is data, and stays it
COLUMNS = (
    "a`b",
    "a``; DROP TABLE x; --",
    "a'b",
    'a"b',
    "a b",
    "a.b",
    "a\\b",
    "a;b",
    "select",
    "日本",
    "a--b",
    "/*a",
    "${x}",
    ":a",
    "x" * 255,
)


def problems_of(world: World) -> Problems:
    """What `console plan` would say of the project's files."""
    try:
        project = load(world.root)
        for region in project.regions:
            plan(project.pipeline(None, region), _live(region), region, "t")
    except Problems as problems:
        return problems
    raise AssertionError("it was taken")


@pytest.mark.parametrize("kind", ["regions/{}.yaml", "plans/{}/pipeline.yaml", "plans/web/tables/{}.yaml",
                                  "plans/web/materializations/{}.sql", "plans/web/endpoints/{}.sql"])  # fmt: skip
def test_s01_a_name_of_ours_that_is_not_plain_is_refused_where_it_stands(world: World, kind: str) -> None:
    for name in NAMES:
        if "/" in name or "\0" in name or len(name) > 250 or name in ("", ".."):
            continue  # no file can be called so
        path = world.root / kind.format(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("description: x\n" if path.suffix == ".yaml" else "/* into: requests */ SELECT 1")
        with pytest.raises(Problems) as caught:
            load(world.root)
        codes = {problem.code for problem in caught.value.problems}
        assert codes & {"P013", "P010", "P011"}, name
        path.unlink()
        if kind.startswith("plans/{}"):
            path.parent.rmdir()
    load(world.root)


def test_s01_a_name_inside_a_file_that_is_not_plain_is_refused_with_its_line(world: World) -> None:
    for name, (file, text) in itertools.product(
        filter(None, NAMES),
        {
            "regions/us.yaml": "name: {}\nwarehouse: w/us\n",
            "plans/web/pipeline.yaml": "name: web\nvariables: {{{}: 1}}\n",
            "plans/web/endpoints/newest.sql": "/*\nparameters:\n  {}: date\n*/\nSELECT id FROM requests\n",
            "plans/web/materializations/parse.sql": "/*\ninto: {}\n*/\nSELECT id, ts, to_date(ts) AS day FROM landing\n",
        }.items(),
    ):
        quoted = '"' + "".join(c if c.isalnum() or c in " -./'`;" else f"\\U{ord(c):08x}" for c in name) + '"'
        world.write({file: text.format(quoted)})
        problems = problems_of(world).problems
        assert all(problem.where.count(":") == 2 for problem in problems)
        assert any(problem.where.startswith(file) for problem in problems), name
        world.write({file: FILES[file]})


@pytest.mark.parametrize("name", COLUMNS)
def test_s01_a_foreign_columns_name_is_one_identifier_in_every_query(world: World, name: str) -> None:
    """Through the planner and back: the very name comes out of the SQL that the agent will run, and nothing else."""
    quoted = "`" + name.replace("`", "``") + "`"
    text = name.replace("\\", "\\\\").replace('"', '\\"')
    world.write(
        {
            "plans/web/tables/landing.yaml": (
                f'kind: landing\ntime: ts\ncolumns: {{"{text}": string, id: string, ts: timestamp, payload: string}}\n'
            ),
            "plans/web/materializations/parse.sql": (
                f"/*\ninto: requests\n*/\nSELECT {quoted} AS id, ts, to_date(ts) AS day FROM landing WHERE {quoted} <> 'x'\n"
            ),
        }
    )
    project = load(world.root)
    region = project.regions[0]
    columns = (
        Column(name=name, type="string"),
        Column(name="id", type="string"),
        Column(name="ts", type="timestamp"),
        Column(name="payload", type="string"),
    )
    stats = TableStats(
        name="landing",
        path="landing",
        version=1,
        rows=5,
        bytes=500,
        files=1,
        columns=columns,
        days=(Day("2026-11-07", 5, 500),),
    )
    made = plan(
        project.pipeline(None, region),
        Live(region=region.name, pipeline="web", release=None, stats=(stats,)),
        region,
        "t",
    )
    queries = [step.sql for step in made.steps if isinstance(step, Backfill)]
    assert queries
    for sql in queries:
        (tree,) = sqlglot.parse(sql, dialect="spark")
        assert isinstance(tree, exp.Query)
        assert name.lower() in {column.name.lower() for column in tree.find_all(exp.Column)}
        assert {table.name for table in tree.find_all(exp.Table)} <= {"landing", "source", "_source", "requests"}


def test_s02_a_value_on_the_command_line_is_its_type_or_a_usage_error() -> None:
    kinds = ("date", "timestamp", "int", "bigint", "decimal(10,2)", "double", "boolean")
    for value, kind in itertools.product(INJECTIONS, kinds):
        with pytest.raises(UsageError) as caught:
            typed((Parameter("p", kind),), {"p": value})
        assert caught.value.exit_code == 64


def test_s02_a_text_parameter_travels_beside_the_query_and_never_in_it() -> None:
    sql = "SELECT ip FROM requests WHERE host = :p"
    queries = set()
    for value in INJECTIONS:
        kind = guessed_type(value)
        if "\0" in value:
            with pytest.raises(UsageError):
                typed((Parameter("p", kind),), {"p": value})
            continue
        args = typed((Parameter("p", kind),), {"p": value})
        queries.add(compile_query(sql, release(live()), (Parameter("p", kind),)).sql)
        assert args == {"p": (value, kind)}
    assert len(queries) == 1
    assert ":p" in queries.pop()


@pytest.mark.parametrize("words", [["plan"], ["status"], ["apply", "--yes"], ["promote"], ["query", "SELECT 1"]])
def test_s02_a_region_that_is_none_exits_64_and_reaches_nothing(world: World, words: list[str]) -> None:
    for name in ("eu;rm -rf /", "eu' OR '1'='1", "../eu", "\x1b[2Jeu", "--yes", "@wave1;x", "eu us", "ЕU", "*"):
        result = world.call(*words, f"--regions={name}")
        assert result.exit_code == 64, (words, name, result.output)
        assert result.stderr.startswith("error: ")
        assert "\x1b" not in result.stderr
    assert world.regions == {}, "a region was reached"


def test_s03_hostile_sql_is_refused_with_its_line_in_whatever_file_it_stands(world: World) -> None:
    places = {
        "plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\n",
        "plans/web/endpoints/newest.sql": "/*\ndescription: x\n*/\n",
        "plans/web/sinks/dump.sql": "/*\npath: exports/dump\n*/\n",
        "plans/web/copies/all.sql": "/*\ninto: whole\n*/\n",
    }
    for (file, front), sql in itertools.product(places.items(), HOSTILE):
        world.write({file: front + sql})
        began = time.process_time()
        problems = problems_of(world)
        assert time.process_time() - began < 1
        assert problems.exit_code == 65
        assert any(re.match(rf"{file}:\d+:\d+$", problem.where) for problem in problems.problems), sql[:80]
        world.write({file: FILES.get(file, "")})
        if file not in FILES:
            (world.root / file).unlink()


def test_s03_console_query_only_reads(deployed: World) -> None:
    """What is refused is refused before anything is sent: the fake region would answer whatever it is asked."""
    for sql in HOSTILE:
        if not sql.strip():
            continue
        result = deployed.call("query", "-", "--region", "eu", input=sql.encode("utf-8", "surrogatepass"))
        assert (result.exit_code, result.stdout) == (65, ""), sql[:80]
        assert result.stderr.startswith("error: ")
    good = deployed.call("query", "SELECT id FROM requests", "--region", "eu")
    assert good.exit_code == 0, good.output


@pytest.mark.parametrize(
    "sql", ["reflect('a', 'b') AS agent", "'' AS agent FROM text.`/etc/passwd`", "'' AS agent; DROP TABLE requests"]
)
def test_s03_a_forward_query_is_checked_as_well(deployed: World, sql: str) -> None:
    file = "plans/web/tables/requests.yaml"
    deployed.write({file: f'{CHANGE[file]}forward_query: "id, ts, day, {sql}"\n'})
    result = deployed.call("plan")
    assert result.exit_code == 65, result.output
    assert file in result.stderr
