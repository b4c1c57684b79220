"""Every function by name, with any number of arguments: two are equal only if they are listed, and none breaks the compiler."""

from collections import defaultdict

import pytest
from sqlglot.parsers.spark import SparkParser

from console.planning.compare import compare
from console.planning.sql import allow
from console.planning.sql.compile import NameScope, query
from console.planning.sql.semantics import Unclear, evaluate, functions
from console.planning.sql.syntax import lenient
from console.planning.sql.tree import Text

pytestmark = pytest.mark.slow

NAMES = sorted(
    {name.lower() for name in (*SparkParser.FUNCTIONS, *SparkParser.FUNCTION_PARSERS)}
    | {*functions._KNOWN, *functions._AGGREGATES, *allow.NAMES}
)
# Spark's other names for one function, and what sqlglot alone calls otherwise
SYNONYMS = [
    set(line.split())
    for line in """
    aggregate reduce
    and or coalesce ifnull nvl
    approx_count_distinct approx_distinct
    approx_percentile approx_quantile percentile_approx
    approximate_jaccard_index approximate_similarity
    arg_max argmax max_by
    arg_min argmin min_by
    array_agg arrayagg collect_list
    date to_date
    array_cat array_concat
    array_contains array_has
    array_contains_all array_has_all
    array_filter filter
    array_intersect array_intersection
    array_join array_to_string
    array_length size
    array_unique_agg collect_set
    avg mean
    base64 to_base64
    bit_and bitwise_and_agg
    bit_count bitwise_count
    bit_get get_bit getbit
    bit_or bitwise_or_agg
    bit_xor bitwise_xor_agg
    bool_and booland_agg every logical_and
    bool_or boolor_agg logical_or some
    ceil ceiling
    char chr
    char_length character_length len length
    locate position instr str_position strpos
    count_if countif
    curdate current_date
    current_timestamp now
    date_add dateadd timestampadd
    date_diff datediff
    date_from_parts datefromparts
    date_to_date_str string time_to_time_str
    day dayofmonth
    dayofweek_iso isodow
    decode decode_case
    ends_with endswith
    farm_fingerprint farmfingerprint64
    any_value first first_value
    format format_string
    from_base64 unbase64
    gen_random_uuid generate_uuid uuid_string
    generate_series sequence
    group_concat listagg string_agg
    if iif
    insert stuff
    is_inf isinf
    is_nan isnan
    j_s_o_n_object json_object
    j_s_o_n_object_agg json_objectagg
    json_extract_path_text json_extract_scalar
    json_format to_json
    json_keys json_object_keys
    json_parse parse_json
    last last_value
    last_day last_day_of_month
    lcase lower
    make_timestamp timestamp_from_parts timestampfromparts
    map var_map
    named_struct struct
    open_j_s_o_n openjson
    pow power
    rand random
    regexp_like rlike
    regexp_split split
    safe_add try_add
    safe_divide try_divide
    safe_multiply try_multiply
    safe_subtract try_subtract
    sha sha1
    sign signum
    split_by_string string_to_array
    st_makepoint st_point
    starts_with startswith
    std stddev stddev_samp stddevsamp stdev
    substr substring
    time_from_parts timefromparts
    timestamp_ltz_from_parts timestampltzfromparts
    timestamp_tz_from_parts timestamptzfromparts
    ucase upper
    var_pop variance_pop
    var_samp variance variance_samp
    week_of_year weekofyear
    year_of_week yearofweek
    year_of_week_iso yearofweekiso
    """.strip().splitlines()
]
MOST = 4


def call(name: str, arguments: int) -> str:
    return f"SELECT {name}({', '.join('abcd'[:arguments])}) AS x FROM t"


def test_no_function_is_taken_for_another_but_for_its_synonyms() -> None:
    results = defaultdict(set)
    for name in NAMES:
        for arguments in range(1, MOST + 1):
            try:
                given = evaluate(lenient.parsed(call(name, arguments)), {}, strict=False).relation
            except Unclear:
                continue
            if "x" in given.columns:
                results[given.rows, given.columns["x"].hash].add(name)
    assert len(results) > 1500
    taken = [names for names in results.values() if len(names) > 1 and not any(names <= one for one in SYNONYMS)]
    assert taken == []


def test_every_call_compiles_or_is_a_problem_with_its_place() -> None:
    known = NameScope({"t": {"a": "int", "b": "string", "c": "double", "d": "date"}})
    compiled = 0
    for name in NAMES:
        for arguments in range(MOST + 1):
            text = Text(sql=call(name, arguments), where="plans/web/endpoints/e.sql:3:1", node="e")
            done = query(text, known)
            assert (done is None) == bool(text.problems), text.sql
            assert all(p.code.startswith("S1") and p.where.startswith(text.where[:-2]) for p in text.problems), text
            compiled += done is not None
    assert compiled > 500


BROKEN = [
    "isnull()",
    "date_part('x')",
    "map(a)",
    "regexp_replace(b, 'a')",
    "date_trunc()",
    "count()",
    "approx_percentile()",
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_call_with_too_few_arguments_is_unknown_to_the_comparison_and_breaks_nothing(broken: str) -> None:
    for old, new in (("1", broken), (broken, f"upper({broken})")):
        comparison = compare(f"SELECT a, {old} AS x FROM t", f"SELECT a, {new} AS x FROM t")
        assert comparison.why
        assert not comparison.equal
    assert "map(a) has not the arguments" in compare("SELECT 1 AS x FROM t", "SELECT upper(map(a)) AS x FROM t").why


@pytest.mark.parametrize("broken", ["map(a)", "date_trunc()"])
def test_what_cannot_even_be_read_is_named_with_its_place(broken: str) -> None:
    text = Text(
        sql=f"SELECT upper(b) AS u,\n  lower({broken}) AS x FROM t", where="plans/web/endpoints/e.sql:3:1", node="e"
    )
    assert query(text, NameScope({"t": {"a": "int", "b": "string"}})) is None
    (problem,) = text.problems
    assert (problem.code, problem.where) == ("S102", "plans/web/endpoints/e.sql:4:9")
    assert broken in problem.message
