"""Desired pipeline and live release to a plan: pure functions, no Spark, no clock, no I/O. Its stages are in `build`."""

from console.planning.build import check, plan
from console.planning.cache.planner_cache import Memory, PlannerCache
from console.planning.compare import QueryDifference, compare
from console.planning.queries import compile_query
from console.planning.review.baseline import Baseline, baseline, baseline_changes
from console.planning.sql.compile import Compiled

__all__ = [
    "Baseline",
    "Compiled",
    "Memory",
    "PlannerCache",
    "QueryDifference",
    "baseline",
    "baseline_changes",
    "check",
    "compare",
    "compile_query",
    "plan",
]
