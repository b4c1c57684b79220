"""Every mistake in the files is reported with its place, the expected form and the probable intention, all at once."""

import pytest
from conftest import FILES, Write

from console.errors import Problems
from console.project import load
from console.project.excerpt import excerpt

LANDING, REQUESTS = "plans/web/tables/landing.yaml", "plans/web/tables/requests.yaml"
PARSE, TOP = "plans/web/materializations/parse.sql", "plans/web/endpoints/top.sql"
EU = "regions/eu.yaml"
OVERRIDE = "warehouse: lake/eu\noverrides: {web: {tables: "

# file, its text, the messages as shown, the hint of the first
MISTAKES: list[tuple[str, str | None, list[str], str]] = [
    (EU, "warehose: x", ["regions/eu.yaml:1:1: unknown key `warehose` [P010]"], "did you mean `warehouse`?"),
    (EU, "wave: 2", ["regions/eu.yaml:1:1: `warehouse` is missing [P011]"], "warehouse: s3://bucket/path"),
    (EU, "warehouse: w\nwave: two", ["regions/eu.yaml:2:7: wave: expected a whole number, found `two` [P012]"], ""),
    (EU, "warehouse: w\nwave: 1.5", ["regions/eu.yaml:2:7: wave: expected a whole number, found `1.5` [P012]"], ""),
    (
        EU,
        "warehouse: w\ncanary: on",
        ["regions/eu.yaml:2:9: canary: expected true or false, found `on` [P012]"],
        "true",
    ),
    (EU, "warehouse: w\nname: us", ["regions/eu.yaml:2:7: name: the file is named eu.yaml, found `us` [P021]"], "same"),
    (
        EU,
        "warehouse: w\npolicy: {promote: aks}",
        ["regions/eu.yaml:2:19: policy.promote: expected one of ask, never, auto, found `aks` [P012]"],
        "did you mean `ask`?",
    ),
    (
        EU,
        "warehouse: w\nlimits: {rows: many, bytes: 20 Gb}",
        [
            "regions/eu.yaml:2:16: limits.rows: expected a number above 0, such as 5_000_000, found `many` [P012]",
            "regions/eu.yaml:2:29: limits.bytes: expected a size such as 20 GiB or 500 MB, found `20 Gb` [P012]",
        ],
        "",
    ),
    (
        EU,
        "warehouse: w\nfollow: {share: 0%, lag: 0s, idle: 30s}",
        [
            "regions/eu.yaml:2:17: follow.share: expected a share from 1% to 100%, such as 25%, found `0%` [P012]",
            "regions/eu.yaml:2:26: follow.lag: expected a time of a second or more, such as 5s, found `0s` [P012]",
            "regions/eu.yaml:2:36: follow.idle: expected never, or a time of a minute or more, such as 5m, found `30s` [P012]",
        ],
        "",
    ),
    (
        EU,
        "warehouse: w\nfollow: {share: 0.25, lags: 5s}",
        [
            "regions/eu.yaml:2:17: follow.share: expected a share from 1% to 100%, such as 25%, found `0.25` [P012]",
            "regions/eu.yaml:2:23: follow: unknown key `lags` [P010]",
        ],
        "",
    ),
    (
        EU,
        "warehouse: w\nsecrets: {aws: hunter2}",
        [
            "regions/eu.yaml:2:16: secrets.aws: expected a reference, never the secret itself: env:NAME, file:PATH "
            "or keyring:SERVICE/USER [P012]"
        ],
        "",
    ),
    (
        EU,
        "warehouse: w\ntransport: {ssh: {host: -oProxyCommand=id}}",
        [
            "regions/eu.yaml:2:25: transport.ssh.host: expected a host or user name, found `-oProxyCommand=id` [P012]",
        ],
        "",
    ),
    (
        EU,
        "warehouse: w\nzone: europe/madird",
        ["regions/eu.yaml:2:7: zone: expected a time zone, found `europe/madird` [P012]"],
        "did you mean `Europe/Madrid`?",
    ),
    (
        EU,
        "warehouse: w\nspark: {master: local, remote: 'sc://h'}",
        [
            "regions/eu.yaml:2:8: spark: master and remote exclude each other; `master: null` takes a default away [P012]",
        ],
        "",
    ),
    (
        EU,
        "warehouse: w\nspark: {master: yarn-client, defaults: conf/spark-defaults.conf}",
        [
            "regions/eu.yaml:2:17: spark.master: expected local[N], spark://HOST:PORT, yarn or k8s://URL, found `yarn-client` [P012]",
            "regions/eu.yaml:2:40: spark.defaults: expected an absolute path on the region's host, found `conf/spark-defaults.conf` [P012]",
        ],
        "",
    ),
    (
        "regions/_defaults.yaml",
        "limit: {rows: 1}",
        ["regions/_defaults.yaml:1:1: unknown key `limit` [P010]"],
        "limits",
    ),
    (
        "regions/_default.yaml",
        "wave: 1",
        ["regions/_default.yaml:1:1: `_default` is not a valid name: a lower-case letter"],
        "_def",
    ),
    ("regions/ap.yml", "", ["regions/ap.yml:1:1: not a region's file [P020]"], "rename it to ap.yaml"),
    (
        "regions/Eu.yaml",
        "",
        ["regions/Eu.yaml:1:1: `Eu` is not a valid name: a lower-case letter, then up to 62"],
        "rename",
    ),
    (
        "regions/us.yaml",
        "warehouse: ./lake//eu",
        ["regions/us.yaml:1:1: regions eu and us have the same warehouse"],
        "eu",
    ),
    (EU, "warehouse: lake/eu/web", [], ""),
    (
        LANDING,
        "columns: {id: string}\nkind: landing\non_rewrite: replay_days",
        [f"{LANDING}:3:13: on_rewrite: `replay_days` is not supported yet [P012]"],
        "did you mean `stop`?",
    ),
    (
        LANDING,
        "columns: {id: string}\nkind: landing\non_rewrite: replay",
        [f"{LANDING}:3:13: on_rewrite: expected one of stop, ignore, take_inserts, found `replay` [P012]"],
        "",
    ),
    (LANDING, "colums: {id: string}", [f"{LANDING}:1:1: unknown key `colums` [P010]"], "did you mean `columns`?"),
    (
        REQUESTS,
        "columns: {a: strng, b: decimal(40), c: array<int, d: 7, e: }",
        [
            f"{REQUESTS}:1:14: columns.a: `strng` is not a Spark type [P012]",
            f"{REQUESTS}:1:24: columns.b: a decimal has precision 1 to 38 and a scale not above it [P012]",
            f"{REQUESTS}:1:40: columns.c: `>` is missing at the end of the type [P012]",
            f"{REQUESTS}:1:54: columns.d: expected a Spark type, or {{type, nullable, default, comment}}, found `7` [P012]",
            f"{REQUESTS}:1:59: columns.e: expected a Spark type, or {{type, nullable, default, comment}}, found nothing",
        ],
        "did you mean `string`?",
    ),
    (
        REQUESTS,
        "columns: {a: {type: int, nulable: false, default: many}, A: date, 'b c': int}\npartition_by: [dey]\ntime: a",
        [f"{REQUESTS}:1:26: columns.a: unknown key `nulable` [P010]"],
        "did you mean `nullable`?",
    ),
    (
        REQUESTS,
        "columns: {a: {type: int, default: many}, A: date, 'b c': int}\npartition_by: [dey]\ntime: a\nmanaged: true",
        [
            f"{REQUESTS}:1:35: columns.a.default: expected a whole number that fits int, found `many` [P012]",
            f"{REQUESTS}:1:42: columns: `a` and `A` are one name to Spark [P013]",
            f"{REQUESTS}:1:51: columns: the column name `b c` holds ` `, which Delta does not store [P013]",
            f"{REQUESTS}:2:16: partition_by: requests has no column `dey` [P033]",
            f"{REQUESTS}:3:7: time: `a` is int, expected a timestamp or a date [P012]",
            f"{REQUESTS}:4:10: managed: only a landing table is managed or not [P012]",
        ],
        "",
    ),
    (
        LANDING,
        "kind: landing\nmanaged: true\naccepts_until: 2026-13-01\ncolumns: {id: string, ts: timestamp}",
        [f"{LANDING}:3:16: accepts_until: expected a day such as 2026-12-01, found `2026-13-01` [P012]"],
        "",
    ),
    (
        LANDING,
        "kind: landing\nmanaged: true\naccepts: {marker: w}\ncolumns: {id: string, ts: timestamp}",
        [f"{LANDING}:3:10: accepts.marker: landing has no column `w` [P033]"],
        "",
    ),
    (
        LANDING,
        "kind: landing\nmanaged: true\naccepts: {}\ncolumns: {id: string, ts: timestamp}",
        [f"{LANDING}:3:10: accepts: expected a marker or the name of a shape [P012]"],
        "accepts: {marker: COLUMN}",
    ),
    (
        LANDING,
        "kind: landing\nmanaged: true\naccepts: {shape: V 2}\ncolumns: {id: string, ts: timestamp}",
        [f"{LANDING}:3:10: accepts.shape: `V 2` is not a valid name"],
        "accepts: {shape: v2}",
    ),
    (
        LANDING,
        "kind: landing\naccepts: {shape: v2}\ncolumns: {id: string, ts: timestamp}",
        [f"{LANDING}:2:10: accepts: only a managed landing table takes lines [P012]"],
        "remove the line",
    ),
    (
        REQUESTS,
        "source: landing\nselect: a\ncolumns: {a: int}",
        [f"{REQUESTS}:1:9: source: only a landing table can be in front of another one [P012]"],
        "kind: landing",
    ),
    (
        REQUESTS,
        "kind: landing\nselect: a\ncolumns: {a: int}",
        [
            f"{PARSE}:1:10: into: `requests` is a landing table, which others write [P031]",
            f"{REQUESTS}:2:9: select: only an adapter, a landing table with `source`, has one [P012]",
        ],
        "",
    ),
    (
        REQUESTS,
        "kind: landing\nsource: lending\nwas: other\ncolumns: {a: int}",
        [
            f"{PARSE}:1:10: into: `requests` is a landing table, which others write [P031]",
            f"{REQUESTS}:2:9: source: `lending` is not a landing table that others write [P031]",
            f"{REQUESTS}:3:6: was: nobody sends lines to an adapter: it is fed from its source [P012]",
        ],
        "",
    ),
    (
        REQUESTS,
        "kind: landing\nsource: landing\ncolumns: {a: int}",
        [
            f"{PARSE}:1:10: into: `requests` is a landing table, which others write [P031]",
            f"{REQUESTS}:2:9: source: landing is managed, and needs no adapter [P031]",
        ],
        "",
    ),
    (
        REQUESTS,
        "columns: {a: int}\naccepts_until: 2026-12-01",
        [f"{REQUESTS}:2:16: accepts_until: only a managed landing table takes lines [P012]"],
        "remove the line",
    ),
    (
        REQUESTS,
        "columns: {a: int}\nwas: landing",
        [
            f"{REQUESTS}:2:6: was: only a landing table can be renamed [P012]",
            f"{REQUESTS}:2:6: was: landing is a table of this pipeline [P030]",
        ],
        "remove the line: another table is computed from its sources under its new name",
    ),
    (
        LANDING,
        "kind: landing\nmanaged: true\ncolumns: {id: string, 'id@2': string, ts: timestamp}",
        [f"{LANDING}:3:23: columns: the column name `id@2` is kept for the stored values of `id` [P013]"],
        "rename the column",
    ),
    (
        REQUESTS,
        "columns: {a: int, b: 'array<int>', d: date}\npartition_by: d\ncluster_by: [a, b, d, a, c]",
        [
            f"{REQUESTS}:3:17: cluster_by: `b` is array<int>, which has no order [P012]",
            f"{REQUESTS}:3:20: cluster_by: rows are put together by `d` already [P012]",
            f"{REQUESTS}:3:23: cluster_by: rows are put together by `a` already [P012]",
            f"{REQUESTS}:3:26: cluster_by: requests has no column `c` [P033]",
        ],
        "",
    ),
    (
        REQUESTS,
        "columns: {a: int}\nretention: 36h\nkind: agregate",
        [
            f"{REQUESTS}:2:12: retention: expected whole days, such as 30d or 72h, found `36h` [P012]",
            f"{REQUESTS}:3:7: kind: expected one of landing, append, aggregate, latest, distinct, found `agregate` [P012]",
        ],
        "",
    ),
    (
        REQUESTS,
        "columns: {a: int}\nretention: 36d",
        [f"{REQUESTS}:2:12: retention: the table has no time column to tell old rows by [P012]"],
        "time: COLUMN",
    ),
    (
        PARSE,
        "SELECT 1",
        [f"{PARSE}:1:1: `into` is missing [P011]", f"{REQUESTS}:1:1: table without a feed: no materialization writes"],
        "begin the file with /* into: TABLE */",
    ),
    (
        PARSE,
        "/* into: reqests\n   descripton: x */ SELECT 1",
        [f"{PARSE}:2:4: unknown key `descripton` [P010]", f"{REQUESTS}:1:1: table without a feed"],
        "did you mean `description`?",
    ),
    (
        PARSE,
        "/*\n  into: reqests\n*/\nSELECT 1",
        [f"{PARSE}:2:9: into: no table is named `reqests` [P031]", f"{REQUESTS}:1:1: table without a feed"],
        "did you mean `requests`?",
    ),
    (
        PARSE,
        "/* into: landing */ SELECT 1",
        [f"{PARSE}:1:10: into: `landing` is a landing table", REQUESTS],
        "requests",
    ),
    (PARSE, "/* into: requests", [f"{PARSE}:1:1: the leading comment has no end [P002]", REQUESTS], "*/"),
    (PARSE, "/* into: requests */  \n", [f"{PARSE}:1:1: no SQL in the file [P011]", REQUESTS], "SELECT"),
    (
        PARSE,
        "/* just prose */ SELECT 1",
        [f"{PARSE}:1:4: expected `key: value` lines, found text [P002]", REQUESTS],
        "--",
    ),
    (
        TOP,
        "/*\nparameters: {days: int, Day: date, n: {type: int, default: ten}, d: {type: date, default: 2024-13-01}}\n*/ S",
        [
            f"{TOP}:2:14: parameters: `days` is a variable of the pipeline already [P030]",
            f"{TOP}:2:25: parameters: `Day` is not a valid parameter name",
            f"{TOP}:2:60: parameters.n.default: expected a whole number that fits int, found `ten` [P012]",
            f"{TOP}:2:91: parameters.d.default: expected a date such as 2026-01-31, found `2024-13-01` [P012]",
        ],
        "rename one of them",
    ),
    (
        "plans/web/endpoints/requests.sql",
        "SELECT 1",
        ["plans/web/endpoints/requests.sql:1:1: two nodes are named"],
        "file",
    ),
    ("plans/web/materializations/requests.sql", "/* into: requests */ SELECT 1", [], ""),
    (
        "plans/web/copies/more.sql",
        "/* into: requests */ SELECT 1",
        ["plans/web/copies/more.sql:1:10: into: `req"],
        "other",
    ),
    (
        "plans/web/copies/more.sql",
        "/* into: by_day */ SELECT 1",
        ["plans/web/copies/more.sql:1:10: into: the copy"],
        "",
    ),
    (
        "plans/web/sinks/a.sql",
        "/* path: ../x */ SELECT 1",
        ["plans/web/sinks/a.sql:1:10: path: expected a place"],
        "..",
    ),
    ("plans/web/sinks/a.sql", "/* path: requests/x */ S", ["plans/web/sinks/a.sql:1:10: path: `requests/` below"], ""),
    ("plans/web/sinks/a.sql", "/* path: exports */ S", ["plans/web/sinks/export.sql:2:7: path: the sink a writes"], ""),
    ("plans/web/table/x.yaml", "", ["plans/web/table:1:1: unknown folder `table` in a pipeline [P020]"], "`tables`"),
    (
        "plans/web/pipelin.yaml",
        "",
        ["plans/web/pipelin.yaml:1:1: unknown file `pipelin.yaml` in a pipeline"],
        "`pipeline.yaml`",
    ),
    ("plans/web/tables/x.sql", "", ["plans/web/tables/x.sql:1:1: a stray file or folder in tables/ [P020]"], ".yaml"),
    ("plans/web/tables/X.yaml", "", ["plans/web/tables/X.yaml:1:1: `X` is not a valid name"], "rename"),
    ("plans/notes.txt", "", ["plans/notes.txt:1:1: a stray file in plans/ [P020]"], "pipeline.yaml"),
    (
        "plans/web/pipeline.yaml",
        None,
        ["plans/web/pipeline.yaml:1:1: `pipeline.yaml` is missing [P011]"],
        "write one; it may be empty",
    ),
    (
        "plans/web/pipeline.yaml",
        "variables: {a-b: 1}",
        ["plans/web/pipeline.yaml:1:13: variables: `a-b` is not a valid param"],
        "",
    ),
    (
        "plans/api/tables/requests.yaml",
        "columns: {a: int}",
        [
            "plans/api/pipeline.yaml:1:1: `pipeline.yaml` is missing",
            "plans/api/tables/requests.yaml:1:1: table without a feed",
            "plans/web/tables/requests.yaml:1:1: pipelines api and web both write a table `requests` [P030]",
        ],
        "write one",
    ),
    (
        "plans/api/sinks/a.sql",
        "/* path: requests/x */ SELECT 1",
        [
            "plans/api/pipeline.yaml:1:1: `pipeline.yaml` is missing",
            "plans/api/sinks/a.sql:1:24: path: `requests/` below the warehouse belongs to a table of pipeline web",
        ],
        "write one",
    ),
    (
        "plans/api/sinks/a.sql",
        "/* path: exports */ SELECT 1",
        [
            "plans/api/pipeline.yaml:1:1: `pipeline.yaml` is missing",
            "plans/web/sinks/export.sql:5:1: path: the sink a of pipeline api writes to the same place",
        ],
        "write one",
    ),
    (
        EU,
        OVERRIDE + "{landng: {}}}}",
        ["regions/eu.yaml:2:28: overrides: pipeline web has no table `landng` [P034]"],
        "landing",
    ),
    (
        EU,
        OVERRIDE + "{landing: {retenton: 3d}}}}",
        ["regions/eu.yaml:2:38: unknown key `retenton` [P010]"],
        "retention",
    ),
    (EU, OVERRIDE + "{landing: {retention: 3x}}}}", ["regions/eu.yaml:2:49: retention: expected a duration"], ""),
    (
        EU,
        OVERRIDE + "{landing: {columns: {+id: int}}}}}",
        ["regions/eu.yaml:2:48: overrides: landing has a column `id`"],
        "`id`",
    ),
    (
        EU,
        OVERRIDE + "{landing: {columns: {-odl: }}}}}",
        ["regions/eu.yaml:2:48: overrides: landing has no column `odl`"],
        "`old`",
    ),
    (
        EU,
        OVERRIDE + "{landing: {columns: {-old: 1}}}}}",
        ["regions/eu.yaml:2:48: overrides: `-old` removes the"],
        "-old:",
    ),
    (
        EU,
        OVERRIDE + "{landing: {columns: {zzzz: int}}}}}",
        ["regions/eu.yaml:2:48: overrides: landing has no"],
        "`+zzzz`",
    ),
    (
        EU,
        OVERRIDE + "{}, variables: {dais: 1}}}",
        ["regions/eu.yaml:2:43: overrides: pipeline web has no variable"],
        "`days`",
    ),
    (
        EU,
        "warehouse: w\noverrides: {wep: {}}",
        ["regions/eu.yaml:2:13: overrides: no pipeline is named `wep`"],
        "`web`",
    ),
]


@pytest.mark.parametrize(("file", "text", "messages", "hint"), MISTAKES)
def test_a_mistake_is_reported_with_its_place_and_what_was_meant(
    project: Write, file: str, text: str | None, messages: list[str], hint: str
) -> None:
    root = project({file: text})
    if not messages:
        load(root)
        return
    with pytest.raises(Problems) as error:
        load(root)
    shown = [str(problem) for problem in error.value.problems]
    assert len(shown) == len(messages), shown
    for line, message in zip(shown, messages, strict=True):
        assert line.startswith(message)
    assert hint in error.value.problems[0].hint
    assert "hunter2" not in "".join(shown)


def test_all_mistakes_of_all_files_come_at_once_and_none_twice(project: Write) -> None:
    spoiled = {EU: OVERRIDE + "{landng: {}}}}\nwave: x", LANDING: "columns: [", REQUESTS: "columns: {a: itn}", TOP: ""}
    none = {"plans/web/endpoints/top.calls.yaml": None}  # of a query with parameters
    with pytest.raises(Problems) as error:
        load(project({**spoiled, **none}))
    places = [problem.where for problem in error.value.problems]
    assert places == sorted(set(places))
    assert {place.split(":")[0] for place in places} == {EU, LANDING, REQUESTS, TOP}
    assert str(error.value).endswith(f"(and {len(places) - 1} more)")
    assert error.value.exit_code == 65


def test_a_mistake_in_the_defaults_is_told_once_and_there(project: Write) -> None:
    with pytest.raises(Problems) as error:
        load(project({"regions/_defaults.yaml": "name: x\nlimits:\n  rows: 0\n"}))
    shown = [str(problem) for problem in error.value.problems]
    assert shown == [
        "regions/_defaults.yaml:1:1: `name` differs from region to region and cannot have a default [P010]",
        "regions/_defaults.yaml:3:9: limits.rows: expected a number above 0, such as 5_000_000, found `0` [P012]",
    ]


def test_the_line_itself_can_be_shown_with_a_caret(project: Write) -> None:
    root = project({EU: "warehouse: w\npolicy: {promote: \x61ks}  # \u202e\n"})
    assert excerpt(root, f"{EU}:2:19") == ("policy: {promote: aks}  # \\u202e", " " * 18 + "^")
    assert excerpt(root, "regions/none.yaml:1:1") == excerpt(root, f"{EU}:9:9") == excerpt(root, "") == ("", "")
    assert FILES[EU] != (root / EU).read_text()
