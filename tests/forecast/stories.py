"""The pipelines of the recorded rollouts, before and after their change."""

from enum import Enum, auto
from pathlib import Path

PIPELINE = "web"
LANDING = "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
REQUESTS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string, status: int"
PARSE = (
    "/* into: requests */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip,"
    " CAST(get_json_object(payload, '$.status') AS INT) AS status"
)
AGENTS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ua: string"
READ = "/* into: agents */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ua') AS ua"
HOURS = "kind: aggregate\npartition_by: [day]\ncolumns: {day: date, hour: timestamp, requests: bigint, errors: bigint"
COUNT = (
    "/* into: by_hour */\nSELECT to_date(ts) AS day, date_trunc('HOUR', ts) AS hour, count(*) AS requests,"
    " count_if(CAST(get_json_object(payload, '$.status') AS INT) >= 400) AS errors"
)
MS, SIZE = "CAST(get_json_object(payload, '$.ms') AS DOUBLE)", "CAST(get_json_object(payload, '$.bytes') AS BIGINT)"


class Story(Enum):
    """The recorded rollouts, by the condition under which each ran. value: the name of its recording"""

    STEADY = "steady"
    HEAVY_DAY = "heavy-day"
    HOURS = "hours"
    LAG = "lag"
    JVM_LOST = "jvm-lost"
    MEMORY = "memory"
    BUSY_EARLY = "busy-early"
    BUSY_LATE = "busy-late"
    TWO_TABLES = "two-tables"
    AGGREGATE = "aggregate"


class Files(Enum):
    """Tables that a change rebuilds."""

    TABLE = auto()
    TABLES = auto()
    AGGREGATE = auto()


def files(root: Path, which: Files, *, changed: bool) -> None:
    """Write the pipeline's files: with one more column per table once it is changed."""
    texts = {"pipeline.yaml": "description: rollouts that are recorded\n", "tables/landing.yaml": LANDING}
    ms = (", ms: double", f", {MS} AS ms") if changed else ("", "")
    size = (", size: bigint", f", {SIZE} AS size") if changed else ("", "")
    slowest = (", slowest: double", f", max({MS}) AS slowest") if changed else ("", "")
    if which is Files.AGGREGATE:
        texts["tables/by_hour.yaml"] = HOURS + slowest[0] + "}\n"
        texts["materializations/count.sql"] = (
            COUNT + slowest[1] + "\nFROM landing\nGROUP BY to_date(ts), date_trunc('HOUR', ts)\n"
        )
    else:
        texts["tables/requests.yaml"] = REQUESTS + ms[0] + "}\n"
        texts["materializations/parse.sql"] = PARSE + ms[1] + "\nFROM landing\n"
    if which is Files.TABLES:
        texts["tables/agents.yaml"] = AGENTS + size[0] + "}\n"
        texts["materializations/read.sql"] = READ + size[1] + "\nFROM landing\n"
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
