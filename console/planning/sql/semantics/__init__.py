"""The semantics of a query as hashes: of its rows (`rows`), and of the values in each column.

A query is evaluated symbolically over its sources' hashes. A CTE or subquery that only selects, filters and joins
dissolves into its sources, so that moving an expression into one changes nothing; everything that is not understood is
hashed into the rows, so that a doubt costs a rebuild and never a wrong "unchanged". Every expression is the
hash of its operator and of its operands' hashes: names of aliases, CTEs and files are ignored, operands of AND, OR, +,
*, = are unordered.

Two queries with the same `rows` return the same rows over the same tables, and a column with the same hash in both has
the same value in each of them. The reverse is not promised.
"""

from console.planning.sql.semantics.functions import aggregates
from console.planning.sql.semantics.rows import REPEATED, QuerySemantics, evaluate, names, query_in, relation_of
from console.planning.sql.semantics.scope import Unclear

__all__ = ["REPEATED", "QuerySemantics", "Unclear", "aggregates", "evaluate", "names", "query_in", "relation_of"]
