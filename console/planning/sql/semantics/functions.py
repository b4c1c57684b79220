"""Properties of functions: aggregates, generators, volatile functions."""

from collections.abc import Iterator

from sqlglot import exp

from console.planning.sql import allow

# names that sqlglot keeps as written, and its class for their synonym
SYNONYMS = {
    "mean": "Avg",
    "std": "Stddev",
    "some": "LogicalOr",
    "any": "LogicalOr",
    "every": "LogicalAnd",
    "now": "CurrentTimestamp",
    "dayofmonth": "day",
    "to_unix_timestamp": "unix_timestamp",
}
_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)  # the same for all tied rows
_BY_POSITION = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile, exp.NthValue, exp.FirstValue, exp.LastValue)
SAME = {"AnyValue": "First", "StddevSamp": "Stddev", "FirstValue": "First", "LastValue": "Last"}
# another result at every call, also within one statement
_FRESH = {"Rand", "Randn", "Uuid", "Shuffle", "RandStr"}
_FRESH_NAMES = {"monotonically_increasing_id", "uniform", "random", "randstr", "spark_partition_id", "uuid"}
_GENERATORS = (exp.UDTF, exp.Explode, exp.Posexplode, exp.PosexplodeOuter, exp.ExplodeOuter, exp.Inline, exp.Stack)
# `window` leaves out rows without a time, and repeats a row for every window that slides over it
_GENERATOR_NAMES = {
    "inline_outer", "variant_explode", "variant_explode_outer", "window", "session_window", "unnest", "flatten_outer",
}  # fmt: skip
_ONE_ROW = {"json_tuple"}
_KNOWN = allow.NAMES | {
    "aes_decrypt", "aes_encrypt", "current_path", "date_part", "from_xml", "input_file_block_length", "is_valid_variant",
    "input_file_block_start", "input_file_name", "make_time", "make_timestamp_ltz", "make_timestamp_ntz", "quote",
    "regexp", "schema_of_csv", "schema_of_variant", "schema_of_xml", "st_asbinary", "st_srid", "time_bucket", "to_time",
    "to_varchar", "to_variant_object", "to_xml", "try_aes_decrypt", "try_make_interval", "try_parse_json", "uniform",
    "try_make_timestamp_ltz", "try_make_timestamp_ntz", "try_to_time", "try_variant_get", "user", "validate_utf8",
    "variant_get", "version", "window_time", "xpath", "xpath_boolean", "xpath_double", "xpath_float", "xpath_int",
    "xpath_long", "xpath_number", "xpath_short", "xpath_string", "kll_sketch_to_string_bigint", "current_database",
    "kll_sketch_to_string_double", "kll_sketch_to_string_float", "theta_sketch_estimate", "theta_union", "randstr",
    "theta_difference", "theta_intersection", "spark_partition_id", "random", "char", "now", "curdate", "current_catalog",
}  # fmt: skip
# also kept as written where queries are only compared
_KNOWN |= {
    "charindex", "convert_timezone", "date_format", "date_sub", "date_trunc", "day", "dayofmonth", "dayofweek", "dayofyear",
    "element_at", "from_unixtime", "from_utc_timestamp", "get_json_object", "hex", "locate", "log", "log10", "log2", "lpad",
    "month", "regexp_extract", "regexp_extract_all", "rpad", "shiftleft", "shiftright", "slice", "sort_array", "str_to_map",
    "to_date", "to_timestamp", "to_utc_timestamp", "trunc", "try_element_at", "unix_timestamp", "to_unix_timestamp", "year",
    "weekofyear", "uuid", "array_size", "array_sort", "array_append", "array_prepend", "array_insert", "array_remove",
}  # fmt: skip
_AGGREGATES = allow.AGGREGATE_NAMES | {
    "bitmap_and_agg", "product", "theta_intersection_agg", "theta_sketch_agg", "theta_union_agg", "schema_of_variant_agg",
    "tuple_intersection_agg_double", "tuple_intersection_agg_integer", "tuple_sketch_agg_double", "approx_top_k",
    "tuple_sketch_agg_integer", "tuple_union_agg_double", "tuple_union_agg_integer", "approx_top_k_accumulate",
    "approx_top_k_combine", "measure", "count_distinct", "percentile", "try_sum", "try_avg",
    "max_by_value", "min_by_value", "sorted_set",
}  # fmt: skip


def called(node: exp.Expr) -> str:
    """The name of a function that sqlglot does not know, else ""."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def of_conditions(node: exp.Expr) -> exp.Expr | None:
    """`every`, `some` and `any` under the names that they share."""
    any_of = isinstance(node, exp.Any) and is_aggregate(node)
    if not any_of and (called(node) not in ("every", "some", "any") or len(node.expressions) != 1):
        return None
    kind = exp.LogicalAnd if called(node) == "every" else exp.LogicalOr
    aggregate: exp.Expr = kind(this=(node.this.unnest() if any_of else node.expressions[0]).copy())
    aggregate.parent, aggregate.arg_key = node.parent, node.arg_key
    return aggregate


def is_aggregate(node: exp.Expr) -> bool:
    """Whether this call aggregates, over a window or not."""
    if isinstance(node, exp.Any):  # `any(x)` is parsed like the `= ANY (…)` of other dialects
        return not isinstance(node.parent, (exp.Binary, exp.Like))
    return isinstance(node, exp.AggFunc) or called(node) in _AGGREGATES


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression aggregates the rows of its own query."""
    return any(True for _ in aggregate_calls(node))


def aggregate_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """Calls that aggregate the rows of their own query, without those in subqueries and windows."""
    for call in node.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if is_aggregate(call) and not over_window(call):
            yield call


def over_window(call: exp.Expr) -> bool:
    parent = call.parent
    while isinstance(parent, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)):
        call, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and call.arg_key == "this"


def takes_order(call: exp.Expr) -> bool:
    """Whether the result of an aggregate depends on the order of its rows."""
    if isinstance(call.parent, exp.WithinGroup):
        return False  # it has its own order
    return is_volatile(call) or isinstance(call, exp.GroupConcat) or strange(call)


def takes_ties(call: exp.Expr, by_rows: bool) -> bool:
    """Whether the result of a window function depends on the order of ties."""
    while isinstance(call, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        call = call.this
    if isinstance(call, _RANKS):
        return False
    return by_rows or isinstance(call, _BY_POSITION) or takes_order(call)


def windows(node: exp.Expr) -> bool:
    return any(isinstance(n, exp.Window) for n in node.walk(prune=lambda inner: isinstance(inner, exp.Query)))


def generates(node: exp.Expr) -> bool:
    """Whether a projection yields any number of rows per row."""
    return generator(node) is not None


def generator(node: exp.Expr) -> exp.Expr | None:
    """The call in a projection that yields any number of rows per row, if any."""
    for call in node.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if isinstance(call, _GENERATORS) or type(call).__name__ == "_ExplodeOuter":
            return call
        if called(call) in _GENERATOR_NAMES:
            return call
    return None


def outer(node: exp.Expr) -> bool:
    """Whether a generator keeps a row for which it yields nothing."""
    return "Outer" in type(node).__name__ or called(node).endswith("_outer")


def is_one_row(node: exp.Expr) -> bool:
    return called(node) in _ONE_ROW


def is_null_test(node: exp.Expr) -> bool:
    return called(node) in ("isnull", "isnotnull") and len(node.expressions) == 1


def strange(node: exp.Expr) -> bool:
    """An unknown function: it may be user-defined."""
    name = called(node)
    return bool(name) and name not in _KNOWN | _AGGREGATES | _GENERATOR_NAMES | _ONE_ROW | set(SYNONYMS)


def fresh(node: exp.Expr) -> bool:
    return type(node).__name__ in _FRESH or called(node) in _FRESH_NAMES


def is_volatile(node: exp.Expr) -> bool:
    name = called(node)
    return fresh(node) or type(node).__name__ in allow.VOLATILE_NODES or name in allow.VOLATILE_NAMES


def only_columns(part: exp.Expr) -> bool:
    """Whether a projection is computed per row: it reads a column, and nothing in it could be an aggregate."""
    if part.is_star:
        return True
    calls = [n for n in part.walk() if strange(n) or isinstance(n, (exp.Query, exp.Window))]
    return not calls and not aggregates(part) and part.find(exp.Column) is not None
