"""Tables of any columns filled by seed, with values that distinguish queries: NULLs, ties, signs, NaN, almost equal texts."""

from collections.abc import Mapping
from random import Random

_VALUES = {
    "int": ("0", "1", "1", "2", "2", "3", "4", "5", "7", "10", "-1", "NULL"),
    "double": ("0.0D", "-0.0D", "0.5D", "0.7D", "1.0D", "1.5D", "2.0D", "-1.5D", "double('NaN')", "NULL"),
    "string": ("'1'", "'2'", "'10'", "'01'", "'x'", "'X'", "' x'", "'x '", "''", "'1x'", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "date": ("'2024-01-01'", "'2024-01-02'", "'2024-02-29'", "'1999-12-31'", "'2025-06-30'", "NULL"),
    "timestamp": ("'2024-01-01 00:00:00'", "'2024-01-01 23:59:59.999999'", "'2024-02-29 12:30:00'", "'1999-12-31 00:00:00'", "NULL"),
    "array<int>": ("array(1, 2)", "array(2, 1, 2)", "array(NULL, 3)", "array()", "NULL"),
    "map<string,int>": ("map('a', 1)", "map('a', 2, 'b', NULL)", "map()", "NULL"),
}  # fmt: skip
Tables = Mapping[str, Mapping[str, str]]


def views(tables: Tables, seed: int, rows: int = 14) -> list[str]:
    """Statements that make the tables."""
    by, results = Random(seed), []
    for name, columns in tables.items():
        cells = [f"({', '.join(by.choice(_VALUES[kind]) for kind in columns.values())})" for _ in range(rows)]
        cells += by.sample(cells, 3)
        typed = ", ".join(f"cast({column} as {kind}) as {column}" for column, kind in columns.items())
        results.append(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {typed} FROM VALUES {', '.join(cells)} AS {name}({', '.join(columns)})"
        )
    return results
