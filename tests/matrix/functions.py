"""Functions that Spark has and an older one lacks: `python -m tests.matrix.functions` asks each environment's Spark.

Writes `console/planning/sql/spark_functions.py`.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.matrix.environments import OLDER, ROOT

MODULE = ROOT / "console" / "planning" / "sql" / "spark_functions.py"
ASK = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
spark = builder.getOrCreate()
names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
print(json.dumps({"version": spark.version, "names": names}))
spark.stop()
"""
HEADER = '''"""Functions of Spark {newest} that an older Spark lacks. Written by `python -m tests.matrix.functions`, from Spark's own lists."""

# of versions between two of these nothing is known
_LACKING = {{
'''
FOOTER = """}
LACKING = {version: frozenset(names.split()) for version, names in _LACKING.items()}
"""


def of(output: str) -> tuple[str, frozenset[str]]:
    """Version and names, from the last line that a run printed."""
    answer = json.loads(output.splitlines()[-1])
    return answer["version"], frozenset(name for name in answer["names"] if name[0].isalpha())


def written(newest: str, names: frozenset[str], older: dict[str, frozenset[str]]) -> str:
    lines = [HEADER.format(newest=newest)]
    for number, has in sorted(older.items()):
        lines.append(f'    "{number}": """\n')
        lines += [f"        {line}\n" for line in _wrapped(sorted(names - has))]
        lines.append('    """,\n')
    return "".join([*lines, FOOTER])


def _wrapped(names: list[str]) -> list[str]:
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) > 110:
            lines.append("")
        lines[-1] = f"{lines[-1]} {name}".strip()
    return lines


def main(path: Path = MODULE) -> int:
    own = subprocess.run([sys.executable, "-P", "-c", ASK], capture_output=True, text=True, check=True)
    newest, names = of(own.stdout)
    assert newest == version("pyspark")
    older = {}
    for environment in OLDER:
        environment.prepare()
        number, has = of(environment.run("-c", ASK).stdout)
        older[number] = has
    path.write_text(written(newest, names, older))
    return 0


if __name__ == "__main__":
    sys.exit(main())
