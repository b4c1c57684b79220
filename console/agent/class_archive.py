"""A class archive for the region's JVM: the classes that a start loads and verifies, prepared once by the set-up.

A JVM with it needs about a third less processor time up to its first job (docs/decisions/0004). The JVM checks an
archive against its own build and class path, and starts without one that does not fit.
"""

import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from console import paths
from console.agent import spark_process, spark_session
from console.agent.settings import Settings
from console.errors import RegionError

# Statements of every region's first minute: create, append with a position, time travel, sketch, compare.
_PARSED = (
    "SELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.a') AS a, e.b AS b,"
    " nullif(regexp_extract(payload, '(x).*', 1), '') AS c"
    " FROM (SELECT *, from_json(payload, 'b INT') AS e FROM delta.`DIR/landing`)"
)
_STATEMENTS = (
    "CREATE TABLE delta.`DIR/landing` USING delta AS SELECT CAST(id AS STRING) AS id, timestamp_seconds(id * 1000) AS ts,"
    """ concat('{"a": "x y", "b": ', id, '}') AS payload FROM range(1000)""",
    f"CREATE TABLE delta.`DIR/parsed` USING delta PARTITIONED BY (day) AS {_PARSED}",
    f"INSERT INTO delta.`DIR/parsed` {_PARSED}",
    "CREATE TABLE delta.`DIR/hourly` USING delta AS SELECT date_trunc('HOUR', ts) AS hour, count(*) AS n, sum(b) AS s,"
    " count_if(b > 1) AS c, kll_sketch_agg_double(CAST(b AS DOUBLE)) AS k, hll_sketch_agg(a, 12) AS h"
    " FROM delta.`DIR/parsed` VERSION AS OF 0 GROUP BY 1",
    "SELECT hour, hll_sketch_estimate(hll_union_agg(h)), sum(n) FROM delta.`DIR/hourly` GROUP BY hour",
    "SELECT day, count(*), sum(xxhash64(id) & 4294967295) FROM delta.`DIR/parsed` VERSION AS OF 1"
    " WHERE ts >= timestamp '1970-01-02' GROUP BY day",
)
STILL_SECONDS = 120.0  # without progress: writing 190 MB takes a busy machine minutes
LONGEST_SECONDS = 1800.0


def make() -> Path:
    """Run a region's usual first statements in a scratch directory, and archive the classes that they load.

    returns  the archive's path, beside Delta's jars
    raises   RegionError if the JVM writes no archive
    """
    path = paths.archive_path()
    fresh = path.with_suffix(".new")
    path.unlink(missing_ok=True)
    fresh.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="console-archive-") as scratch:
        keep = f"{spark_process.GC} -XX:ArchiveClassesAtExit={fresh} {spark_process.QUIET}"
        spark = spark_session.SparkHandle(Settings(region="archive", conf={"spark.driver.extraJavaOptions": keep}), -1)
        session = spark.session(spark__sql__runSQLOnFiles="true")
        for statement in _STATEMENTS:
            session.sql(statement.replace("DIR", scratch)).collect()
        gateway = session.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM exits when its parent's pipe closes, and writes the archive then
        await_end(gateway.proc, fresh)
    fresh.replace(path)
    return path


def await_end(
    process: subprocess.Popen[bytes], fresh: Path, still: float = STILL_SECONDS, longest: float = LONGEST_SECONDS
) -> None:
    """Wait for the process that writes `fresh` while it makes progress; kill it when it does not.

    still    seconds without growth of the file or of its processor time
    longest  seconds in all
    raises   RegionError unless it exits with 0 and the file is there
    """
    begun = moved = time.monotonic()
    seen = _progress_of(process.pid, fresh)
    while process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(1.0, still / 4))
        now, progress = time.monotonic(), _progress_of(process.pid, fresh)
        if progress != seen:
            seen, moved = progress, now
        if process.poll() is None and (now - moved > still or now - begun > longest):
            process.kill()
            process.wait(spark_session.KILLED_SECONDS)
            stood = f"it stood still for {still:.0f} s" if now - moved > still else f"it took over {longest:.0f} s"
            raise _none(stood)
    if process.returncode or not fresh.is_file():
        raise _none(f"the JVM exited with {process.returncode}")


def _progress_of(pid: int, fresh: Path) -> tuple[int, int]:
    """(size of the file, processor time of the process in ticks); 0 for an unreadable one."""
    size = ticks = 0
    with suppress(OSError):
        size = fresh.stat().st_size
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])  # utime and stime of proc(5), which counts pid and name as well
    return size, ticks


def _none(why: str) -> RegionError:
    return RegionError(f"no class archive was written: {why}", hint="the set-up tries again the next time it runs")
