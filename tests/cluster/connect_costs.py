"""What Spark Connect does and costs beside a JVM of one's own: one JSON object (docs/decisions/0026).

python -m tests.cluster.connect_costs              needs Java, Delta's jars and the extra `connect`
python -m tests.cluster.connect_costs times        its small work alone
python -m tests.cluster.connect_costs classic      the same small work in a JVM of this process
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

from console.model.schema import Column
from console.process import leave
from tests.cluster.connect_server import ConnectServer
from tests.faults.rules.tables import state

TIMES = 15
ROWS = 100_000


def median(work: Callable[[], object], times: int = TIMES) -> float:
    """Milliseconds."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return round(statistics.median(took) * 1000, 1)


def rows(session: Any, count: int) -> Any:
    return session.range(0, count, 1, 2).selectExpr(
        "id",
        "concat('e', id) AS name",
        "date_add(DATE'2026-11-01', CAST(id % 3 AS INT)) AS day",
        "id % 777 / 7.0D AS ms",
    )


def timed(session: Any, folder: Path) -> dict[str, float]:
    """The same small work in any session, warm."""
    table, plain = str(folder / "table"), str(folder / "plain")
    rows(session, ROWS).write.format("delta").partitionBy("day").save(table)
    rows(session, 250).write.parquet(plain)

    def step() -> None:
        """A small live step: files, a view, a query, an Arrow table."""
        read = session.read.schema("id BIGINT, name STRING, ms DOUBLE").parquet(plain)
        read.createOrReplaceTempView("step")
        session.sql("SELECT id, upper(name) AS name FROM step WHERE ms > 1").coalesce(1).toArrow()

    def pinned() -> None:
        rows = session.read.format("delta").option("versionAsOf", 0).load(table)
        rows.where("id = 7").select("name").collect()

    def batch() -> None:
        """A batch: Delta's writer, its commit into a table of its own."""
        rows(session, ROWS).write.format("delta").partitionBy("day").save(f"{table}-{time.monotonic_ns()}")

    work = {"select 1": lambda: session.sql("SELECT 1").collect(), "read pinned": pinned, "live step": step}
    for each in work.values():
        for _ in range(5):
            each()
    return {**{name: median(each) for name, each in work.items()}, "batch": median(batch, 5)}


def shown_rows(session: Any) -> dict[str, int]:
    """What the agent's own code sees of two versions that differ in a row, and of a source with a joined table."""
    from console.agent.feeds.live_feed import logical_rows
    from console.agent.recount.pinned_tables import shown

    table = state("t", (Column(name="n", type="int"),), partition_by=())
    one, two = session.sql("SELECT 1 AS n"), session.sql("SELECT 2 AS n")
    old, new = shown(session, table, one), shown(session, table, two)
    found = {"rows by which old and new differ": old.exceptAll(new).count()}
    source = logical_rows(session, table, one)
    logical_rows(session, table, two).createOrReplaceTempView("joined")
    source.createOrReplaceTempView("source")
    found["the source's row, which is 1"] = session.sql("SELECT n FROM source").collect()[0]["n"]
    return found


def classic(folder: Path) -> dict[str, float]:
    """In a JVM of this process, as an agent's."""
    from console.agent.settings import Settings
    from console.agent.spark_process import BRIEF
    from console.agent.spark_session import SparkHandle

    spark = SparkHandle(Settings(region="eu", master="local[1]", conf={"spark.driver.extraJavaOptions": BRIEF}), -1)
    session = spark.session()
    found = timed(session, folder)
    found["new session"] = median(spark.session)
    found |= shown_rows(session)
    spark.stop()
    return found


def told(error: BaseException) -> dict[str, str]:
    said = getattr(error, "getCondition", lambda: "")() or ""
    state = getattr(error, "getSqlState", lambda: "")() or ""
    return {"class": type(error).__name__, "condition": said, "state": state, "text": str(error).splitlines()[0][:200]}


def tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return told(error)


def features(folder: Path, open_session: Callable[[], Any]) -> dict[str, Any]:
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    session, found = open_session(), {}
    table = str(folder / "features")
    observed = Observation()
    rows(session, 90).observe(observed, count(lit(1)).alias("n")).write.format("delta").partitionBy("day").save(table)
    found["observed"] = tried(lambda: observed.get)
    adds = DeltaTable(table).get_add_actions(flatten=True)
    found["files, rows by the log"] = [len(adds), sum(adds.column("num_records").to_pylist())]
    rows(session, 10).write.format("delta").mode("append").option("txnAppId", "a").option("txnVersion", "1").option(
        "userMetadata", "{}"
    ).save(table)
    found["txn"] = DeltaTable(table).transaction_version("a")
    at = session.read.format("delta").option("versionAsOf", 0).load(table)
    found["versionAsOf 0"] = at.count()
    found["input_file_name"] = tried(lambda: at.selectExpr("input_file_name() AS f").first()["f"][-8:])
    found["_metadata"] = tried(lambda: at.selectExpr("_metadata.file_path AS f").first()["f"][-8:])
    found["inputFiles"] = tried(lambda: len(at.inputFiles()))
    found["arrow"] = tried(lambda: at.toArrow().num_rows)
    found["catalogs"] = tried(lambda: [each.name for each in session.catalog.listCatalogs()])
    found["extensions"] = tried(lambda: session.conf.get("spark.sql.extensions"))
    found["static set"] = tried(lambda: session.conf.set("spark.sql.extensions", "x"))
    found["version"] = session.version
    found["sparkContext"] = tried(lambda: session.sparkContext)
    found["newSession"] = tried(lambda: session.newSession)
    info = tried(lambda: _info(at.where("id > 3")))
    found["execution info"] = info
    found["merge by delta.tables"] = tried(lambda: _delta_tables(session, table))
    other = open_session()
    at.createOrReplaceTempView("mine")
    found["another session's view"] = tried(lambda: other.sql("SELECT * FROM mine").count())
    session.conf.set("spark.sql.shuffle.partitions", "7")
    found["another session's setting"] = other.conf.get("spark.sql.shuffle.partitions")
    found["views"] = views(session)
    found["staged"] = tried(lambda: staged(session, folder))
    found["errors"] = errors(session, folder)
    found["tags"] = tags(session, other)
    return found


def _info(frame: Any) -> Any:
    frame.collect()
    return str(frame.executionInfo.metrics.toText())[:600]


def _delta_tables(session: Any, table: str) -> int:
    from delta.tables import DeltaTable as Table

    return int(Table.forPath(session, table).toDF().count())


def views(session: Any) -> dict[str, Any]:
    """A frame over a view, when another view has got its name since."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    one, two = session.sql("SELECT 1 AS n"), session.sql("SELECT 2 AS n")
    one.createOrReplaceTempView("stored")
    read = session.sql("SELECT n FROM stored")
    two.createOrReplaceTempView("stored")
    found = {"by the older view": read.collect()[0]["n"]}
    named = session.table("stored")
    one.createOrReplaceTempView("stored")
    found["table() by the older view"] = named.collect()[0]["n"]
    embedded = DataFrame(SQL("SELECT n FROM stored", views=[SubqueryAlias(two._plan, "stored")]), session)
    found["embedded two"] = tried(lambda: embedded.collect()[0]["n"])
    found["the view of that name, afterwards"] = tried(lambda: session.sql("SELECT n FROM stored").collect()[0]["n"])
    one.createOrReplaceTempView("stored")
    public = session.sql("SELECT n FROM {stored}", stored=two)
    found["by the public call"] = tried(lambda: public.collect()[0]["n"])
    public.createOrReplaceTempView("kept")
    found["a view of it"] = tried(lambda: session.sql("SELECT n FROM kept").collect()[0]["n"])
    found["an unknown column"] = tried(lambda: session.sql("SELECT no_such FROM stored"))
    return found


def staged(session: Any, folder: Path) -> dict[str, Any]:
    """Files written by Delta into a table of one attempt's own, inside of the real one, and named by a commit of deltalake's."""
    table, attempt = folder / "real", "attempt-1"
    odd = "CASE id % 6 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'a b' WHEN 3 THEN 'a/b' WHEN 4 THEN '50%' ELSE 'ü+' END"
    data = rows(session, 20_000).selectExpr("id", "name", "CAST(ms AS DECIMAL(20,3)) AS dec", "day", f"{odd} AS part")
    wanted = json.dumps(data.orderBy("id").limit(6).collect(), default=str)
    DeltaTable.create(str(table), Schema.from_json(data.schema.json()), partition_by=["day", "part"])
    data.write.format("delta").mode("error").partitionBy("day", "part").save(str(table / attempt))
    actions = [json.loads(line) for line in (table / attempt / "_delta_log" / f"{0:020}.json").read_text().splitlines()]
    added = [action["add"] for action in actions if "add" in action]
    adds = [
        AddAction(
            f"{attempt}/{unquote(add['path'])}", add["size"], {n: v or None for n, v in add["partitionValues"].items()},
            add["modificationTime"], True, add["stats"],
        )
        for add in added
    ]  # fmt: skip
    real = DeltaTable(str(table))
    real.create_write_transaction(adds, "append", real.schema(), ["day", "part"])
    seen = session.read.format("delta").load(str(table))
    real.update_incremental()
    spare = real.vacuum(0, enforce_retention_duration=False, dry_run=True)
    return {
        "files": len(adds),
        "with statistics": sum(bool(add.get("stats")) for add in added),
        "protocol": [action["protocol"] for action in actions if "protocol" in action],
        "rows by delta": seen.count(),
        "rows by deltalake": real.to_pyarrow_table().num_rows,
        "the same rows": json.dumps(seen.orderBy("id").limit(6).collect(), default=str) == wanted.replace('""', "null"),
        "distinct": seen.select("id").distinct().count(),
        "a vacuum would delete": [name for name in spare][:5],
    }


def errors(session: Any, folder: Path) -> dict[str, Any]:
    sql = {
        "value": "SELECT CAST(concat('x', id) AS INT) AS n FROM range(3)",
        "raised": "SELECT raise_error(concat('OUT_OF_RANGE', id)) FROM range(3)",
        "column": "SELECT nothing FROM range(3)",
        "syntax": "SELEC 1",
        "table": "SELECT * FROM nowhere",
    }
    found = {name: tried(lambda text=text: session.sql(text).collect()) for name, text in sql.items()}
    gone = folder / "gone"
    session.range(10).write.format("delta").save(str(gone))
    frame = session.read.format("delta").load(str(gone))
    for file in gone.glob("*.parquet"):
        file.unlink()
    found["gone"] = tried(frame.collect)
    return found


def tags(session: Any, other: Any) -> dict[str, Any]:
    """A long job, its progress, and its end by a tag from another thread."""
    seen: list[Any] = []
    said: list[Any] = []

    def progress(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        seen.append((done, inflight_tasks, [(s.stage_id, s.num_completed_tasks, s.num_tasks) for s in stages or ()]))

    def work() -> None:
        session.addTag("job-1")
        session.registerProgressHandler(progress)
        began = time.monotonic()
        try:
            session.range(0, 10**12, 1, 8).selectExpr("sum(id % 7) AS n").collect()
            said.append({"ended": "by itself", "seconds": round(time.monotonic() - began, 1)})
        except Exception as error:
            said.append(told(error))
        session.removeProgressHandler(progress)
        session.removeTag("job-1")

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(6)
    found: dict[str, Any] = {"other session's interrupt": tried(lambda: len(other.interruptTag("job-1")))}
    began = time.monotonic()
    found["interrupted"] = tried(lambda: len(session.interruptTag("job-1")))
    thread.join(60)
    found["seconds to its end"] = round(time.monotonic() - began, 2)
    found["error"], found["reports"] = said, [len(seen), *seen[:2], *seen[-2:]]
    return found


def lost(session: Any, server: ConnectServer) -> dict[str, Any]:
    """A server that ends."""
    server.stop()
    began = time.monotonic()
    found = tried(lambda: session.sql("SELECT 1").collect())
    return {"error": found, "seconds": round(time.monotonic() - began, 1)}


def everything_else(
    session: Any, server: ConnectServer, folder: Path, open_session: Callable[[], Any]
) -> dict[str, Any]:
    """What works, and how. It ends the server."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    found: dict[str, Any] = {"shown": shown_rows(session), "features": features(folder, open_session)}
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True, check=False
    )
    found["children"] = children.stdout.split()
    session.client.set_retry_policies([DefaultPolicy(max_retries=3)])
    found["lost"] = lost(session, server)
    return found


def connect(folder: Path) -> dict[str, Any]:
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    from pyspark.sql.connect.session import SparkSession

    server = ConnectServer(folder=folder)
    began = time.monotonic()
    server.start()
    found: dict[str, Any] = {"server up": round(time.monotonic() - began, 1)}
    try:

        def open_session() -> Any:
            session = SparkSession.builder.remote(server.url).create()
            session.conf.set("spark.sql.session.timeZone", "UTC")
            return session

        began = time.monotonic()
        session = open_session()
        session.sql("SELECT 1").collect()
        found["first answer"] = round(time.monotonic() - began, 1)
        found["times"] = timed(session, folder)
        found["times"]["new session"] = median(open_session)
        found["times"]["setting"] = median(lambda: session.conf.set("spark.sql.ansi.enabled", "true"))
        if sys.argv[1:] != ["times"]:
            found |= everything_else(session, server, folder, open_session)
    except Exception as error:
        found["broke"] = told(error)
    finally:
        server.stop()
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = classic(Path(scratch)) if sys.argv[1:] == ["classic"] else connect(Path(scratch))
    print(json.dumps(found, indent=1, default=str), flush=True)
    leave(0)  # clients of a server that is gone would go on trying for ten minutes


if __name__ == "__main__":
    main()
