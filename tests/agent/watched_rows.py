"""Compares the table of a region's live and previous release with its landing table, by files and with SQL of its own.

    python watched_rows.py WAREHOUSE PIPELINE SUFFIX     a line for each release; exit 1 if a row is lost or there twice

SUFFIX is that of the pipeline's tables.
Imports nothing of the program that it judges. Rows are compared as multisets.
"""

import json
import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

WANTED = "SELECT id, epoch_us(ts) AS ts, json_extract_string(payload, '$.ip') AS ip,"
WANTED += " CAST(json_extract_string(payload, '$.bytes') AS BIGINT) AS bytes FROM landing"
STORED = "SELECT id, epoch_us(ts) AS ts, ip, bytes FROM requests"


def main(warehouse: Path, pipeline: str, suffix: str) -> int:
    db, faults = duckdb.connect(), 0
    db.execute("SET TimeZone = 'UTC'")
    db.register("landing", DeltaTable(str(warehouse / f"landing{suffix}")).to_pyarrow_table())
    releases = DeltaTable(str(warehouse / "_console" / pipeline / "releases")).to_pyarrow_table().to_pylist()
    for row in releases:
        if row["state"] not in ("live", "previous"):
            continue
        tables = json.loads(row["manifest"])["tables"]
        path = next(state["version"]["path"] for state in tables if state["table"]["name"] == f"requests{suffix}")
        db.register("requests", DeltaTable(str(warehouse / path)).to_pyarrow_table(columns=["id", "ts", "ip", "bytes"]))
        (lost,), (extra,) = (
            db.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()[0]
            for one, other in ((WANTED, STORED), (STORED, WANTED))
        )
        ((rows,),) = db.execute("SELECT count(*) FROM requests").fetchall()
        print(json.dumps({"state": row["state"], "id": row["id"], "rows": rows, "lost": lost, "extra": extra}))
        faults += bool(row["state"] == "live" and (lost or extra or not rows))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
