"""What queries leave in the JVM's heap."""

from typing import Any

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.spark]
JOINS = 10
MIB = 1 << 20


def used(session: Any) -> int:
    """Bytes of the heap that are still referenced."""
    runtime = session._jvm.java.lang.Runtime.getRuntime()
    session._jvm.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def test_a_broadcast_of_three_rows_holds_a_few_mebibytes(session: Any) -> None:
    names = session.sql("SELECT * FROM VALUES ('1', 1), ('2', 2), ('3', 3) AS v(k, n)").hint("broadcast")
    joins = [
        session.range(10).selectExpr("CAST(id AS STRING) AS k", f"{n} AS m").join(names, "k") for n in range(JOINS)
    ]
    before = used(session)
    assert [len(join.collect()) for join in joins] == [3] * JOINS  # each holds its broadcast from now on
    assert (used(session) - before) / JOINS < 8 * MIB
