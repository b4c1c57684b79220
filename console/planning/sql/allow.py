"""The SQL that the operator may write: an allow-list of node types and functions over the sqlglot tree.

Anything else is refused, so a function or construct that Spark or sqlglot adds later is refused until it has been
reviewed. The list has everything that computes a value from rows, and nothing that reads files, classes, the
environment or other tables, or runs a program. Table names are checked where the tables are known.

source  Spark SQL's built-in functions; sqlglot 30.30 (`to_char`, `parse_json`, `any`, `last_day(d, part)` are left out
        because that version does not write them back unchanged)
"""

from collections.abc import Iterator

from sqlglot import exp

BYTES = 64 * 1024  # of one query
DEPTH = 200  # of its tree

_NODES = """
    Select With CTE From Table TableAlias Join Where Group Having Order Ordered Limit Offset Subquery Union Intersect
    Except Distinct Window WindowSpec Lateral Values Tuple Hint Cube Rollup GroupingSets Qualify Filter
    Alias Aliases Column Identifier Star Literal Null Boolean Placeholder Interval IntervalSpan Var DataType DataTypeParam ColumnDef
    HexString RawString National Paren Lambda Kwarg PropertyEQ Dot Bracket Slice
    IgnoreNulls Add Sub Mul Div IntDiv Mod Neg DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift
    And Or Xor Not EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Like ILike LikeAny RegexpLike RegexpILike
    Escape Exists Case If JoinHint Cast TryCast AtTimeZone FromTimeZone Collate
"""
_FUNCTIONS = """
    Abs Acos Acosh AddMonths AnyValue ApproxDistinct ApproxQuantile ArgMax ArgMin Array ArrayAgg ArrayAppend
    ArrayCompact ArrayConcat ArrayContains ArrayDistinct ArrayExcept ArrayFilter ArrayInsert ArrayIntersect ArrayMax
    ArrayMin ArrayPosition ArrayPrepend ArrayRemove ArraySize ArraySlice ArraySort ArrayToString ArrayUniqueAgg
    ArraysZip Ascii Asin Asinh Atan Atan2 Atanh Avg BitLength BitmapBitPosition BitmapBucketNumber
    BitmapConstructAgg BitmapCount BitmapOrAgg BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg Cbrt Ceil Chr
    Coalesce Concat ConcatWs Contains ConvertTimezone Corr Cos Cosh Cot Count CountIf CovarPop CovarSamp CumeDist
    CurrentDate CurrentTimestamp CurrentTimezone DateDiff DateFromUnixDate DateTrunc Day DayOfMonth DayOfWeek
    DayOfYear Dayname Decode DecodeCase Degrees DenseRank Elt Encode EndsWith EqualNull Exp Explode Extract
    Factorial First FirstValue Flatten Floor Format FromBase64 FromJson GenerateSeries Greatest Grouping GroupingId
    Hex Hour Initcap Inline IsNan JSONExtractScalar JSONFormat JSONKeys JSONPath JSONPathKey JSONPathRoot
    JSONPathSubscript JSONPathWildcard Kurtosis Lag Last LastDay LastValue Lead Least Left Length Levenshtein Ln
    Localtimestamp Log LogicalAnd LogicalOr Lower MD5 MakeInterval Map MapContainsKey MapFromEntries MapKeys Max
    Median Min Minute Mode Month Monthname MonthsBetween Nanvl Negative NextDay NthValue Ntile Nullif Nvl2 Overlay
    Pad ParseUrl PercentRank Pi Posexplode PosexplodeOuter Pow Quantile Quarter Radians Rand Randn Rank Reduce
    RegexpCount RegexpExtract RegexpExtractAll RegexpInstr RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy
    RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Repeat Replace Reverse Right Rint Round
    RowNumber SHA SHA2 SafeAdd SafeDivide SafeMultiply SafeSubtract Second Shuffle Sign Sin Sinh Skewness
    SortArray Soundex Split SplitPart Sqrt Stack StartsWith Stddev StddevPop StddevSamp StrPosition StrToMap
    StrToTime StrToUnix Struct StructExtract Substring SubstringIndex Sum Tan Tanh TimeStrToTime TimeToStr
    TimestampAdd TimestampDiff TimestampFromParts TimestampTrunc ToBase64 ToBinary ToNumber Transform Translate Trim
    TsOrDsAdd TsOrDsToDate Typeof Unhex UnixDate UnixMicros UnixMillis UnixSeconds UnixToStr Upper Uuid VarMap
    Variance VariancePop WeekOfYear WidthBucket Year ExplodeOuter _ExplodeOuter
"""
_NAMES = """
    array_repeat array_union arrays_overlap assert_true bigint bin binary bround btrim cardinality conv
    count_min_sketch crc32 date_part datepart decimal e every expm1 find_in_set forall format_number from_csv get
    hash histogram_numeric hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg hypot inline_outer
    is_valid_utf8 is_variant_null isnotnull isnull json_array_length json_tuple kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
    kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint
    kll_sketch_get_rank_double kll_sketch_get_rank_float log1p luhn_check make_date make_dt_interval
    make_valid_utf8 make_ym_interval map_concat map_entries map_filter map_values map_zip_with mask mean
    monotonically_increasing_id now nullifzero octet_length pmod positive printf raise_error schema_of_json
    sentences shiftrightunsigned smallint some std timestamp_micros timestamp_millis timestamp_seconds tinyint
    to_csv to_timestamp_ltz to_timestamp_ntz transform_keys transform_values try_avg try_make_timestamp try_mod
    try_parse_url try_sum try_to_binary try_to_date try_to_number try_to_timestamp try_url_decode
    try_validate_utf8 url_decode url_encode weekday window xxhash64 zeroifnull zip_with
"""
NODES = frozenset((_NODES + _FUNCTIONS).split())
NAMES = frozenset(_NAMES.split())

# not repeatable: another result at each evaluation
VOLATILE_NODES = frozenset(
    [
        "Rand",
        "Randn",
        "Uuid",
        "Shuffle",
        "CurrentDate",
        "CurrentTimestamp",
        "Localtimestamp",
        "AnyValue",
        "First",
        "Last",
        "FirstValue",
        "LastValue",
        "ArrayAgg",
        "ArrayUniqueAgg",
        "ArgMax",
        "ArgMin",
        "Mode",
    ]
)
AGGREGATE_NAMES = frozenset(
    [
        "count_min_sketch",
        "every",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "mean",
        "some",
        "std",
        "try_avg",
        "try_sum",
    ]
)
VOLATILE_NAMES = frozenset(["now", "monotonically_increasing_id"])

_HINTS = {
    "reflect": "it calls Java",
    "java_method": "it calls Java",
    "try_reflect": "it calls Java",
    "QueryTransform": "TRANSFORM … USING runs a program",
    "Parameter": "environment and session variables are not substituted; use :name and `variables:` in pipeline.yaml",
    "SessionParameter": "session variables are not substituted; use :name and `variables:` in pipeline.yaml",
    "Version": "the agent alone decides which version is read",
    "read_files": "only the pipeline's tables can be read",
}


def refusals(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str, str]]:
    """Every node that is not on the list.

    returns  (the node, the refused construct, the reason or "")
    """
    for node in tree.walk():
        kind = type(node).__name__
        if isinstance(node, exp.Anonymous):
            name = str(node.this)
            if name.lower() not in NAMES:
                yield (
                    node,
                    f"the function {name.lower()}",
                    _HINTS.get(name.lower(), "it is not on the list of allowed functions"),
                )
        elif isinstance(node, exp.Table):
            if isinstance(node.this, exp.Func):
                yield (
                    node,
                    "a table function",
                    _HINTS.get(str(node.this.name).lower(), "only the pipeline's tables can be read"),
                )
            elif node.args.get("db") or node.args.get("catalog"):
                yield (
                    node,
                    f"the qualified table name {_dotted(node)}",
                    "tables are named by one word, without catalog or format",
                )
            else:
                yield from _unknown_table_arguments(node)
        elif kind not in NODES:
            yield node, kind if kind in _HINTS else _display_name(node), _HINTS.get(kind, "")
        elif node.args.get("on") and kind == "Distinct":
            yield node, "DISTINCT ON", "Spark has none"
        elif node.args.get("symmetric"):
            yield node, "BETWEEN SYMMETRIC", "Spark has none"
        elif kind == "With" and node.args.get("recursive"):
            yield node, "WITH RECURSIVE", ""
        elif kind == "Select":
            yield from _unknown_clauses(node)


def depth(tree: exp.Expr) -> int:
    """Levels of the tree, counted without recursion."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in node.iter_expressions()]
    return deepest


def _unknown_table_arguments(table: exp.Table) -> Iterator[tuple[exp.Expr, str, str]]:
    for key, value in table.args.items():
        if value and key not in ("this", "alias", "joins", "laterals"):
            yield table, f"{key} on a table", _HINTS["Version"] if key in ("version", "when") else ""


def _unknown_clauses(select: exp.Expr) -> Iterator[tuple[exp.Expr, str, str]]:
    known = {
        "with_", "kind", "expressions", "hint", "distinct", "from_", "joins", "laterals", "where", "group", "having",
        "order", "limit", "offset", "qualify", "windows", "operation_modifiers",
    }  # fmt: skip
    for key, value in select.args.items():
        if value and key not in known:
            yield select, f"{key.rstrip('_').upper()} in a SELECT", ""
    having = select.args.get("having")
    if having is not None and (call := having.find(exp.Grouping, exp.GroupingId)) is not None:
        yield call, "GROUPING in HAVING", "select it in a subquery, and filter there"


def _dotted(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _display_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    return f"{type(node).__name__}"
