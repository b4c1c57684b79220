"""The stores that a schema is carried into, one module and one value each; a new one is a line here.

Its client is `console/stores/<kind>.py`.
"""

from typing import Final

from console.propagation.dialects.clickhouse import CLICKHOUSE
from console.propagation.dialects.delta import DELTA
from console.propagation.dialects.dialect import Dialect
from console.propagation.dialects.iceberg import ICEBERG

# in the order in which pages and messages name them
DIALECTS: Final[dict[str, Dialect]] = {dialect.kind: dialect for dialect in (CLICKHOUSE, ICEBERG, DELTA)}
