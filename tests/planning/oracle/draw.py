"""Random queries over hostile rows: few names and values, so that confusions occur."""

from random import Random

from tests.planning.oracle.shapes import shaped

TABLES = {
    "t": {"a": "int", "k": "int", "id": "int", "b": "string", "c": "double", "flag": "boolean"},
    "u": {"a": "int", "k": "int", "v": "int", "w": "string"},
    "e": {"id": "int", "a": "int", "arr": "array<int>"},
}
# ties, repeats, NULLs, negatives, NaN; small enough that a join and a cross join differ
ROWS = {
    "t": [
        "(1, 1, 1, '1', 1.0D, true)", "(2, 1, 2, '2', 0.5D, false)", "(2, 1, 3, '2', double('NaN'), true)",
        "(3, 2, 4, '10', -1.0D, NULL)", "(NULL, 2, 5, NULL, NULL, false)", "(-1, NULL, 6, '-1', 0.5D, true)",
        "(5, 3, 7, '5', 2.0D, NULL)", "(2, 1, 3, '2', double('NaN'), true)", "(0, NULL, -8, '0', -0.0D, false)",
    ],
    "u": ["(1, 1, 10, '1')", "(2, 1, NULL, '2')", "(2, 3, 7, NULL)", "(NULL, NULL, 7, '3')", "(4, 2, -7, '1')", "(3, 2, 2, '2')"],
    "e": ["(1, 2, array(1, 2, 2))", "(2, NULL, array(NULL, 3))", "(3, 1, NULL)", "(4, 2, array(4))", "(4, 3, array(-1, 0))"],
}  # fmt: skip
INTS, NAMES = ("a", "k", "id"), ("a", "k", "id", "x", "y", "b")
_BITS = ("+", "-", "*", "%", "&", "|", "^", "<<", ">>", ">>>", "div")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "<=>", "==", "!=")


def views() -> list[str]:
    """Statements that make the tables."""
    return [
        f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM VALUES {', '.join(rows)} AS {name}({', '.join(TABLES[name])})"
        for name, rows in ROWS.items()
    ]


_ATOMS = (
    "a", "b", "k", "4", "-1", "'x'", "flag", "s.x", "arr[0]", "(a + k)", "t.a", "true", "null", "f(a)", "1.5", "a::int",
    "cast(a as string)", "-2::string", "case when a then b else k end", "(b collate UTF8_LCASE)", "interval 1 day",
    "array_contains(arr, a)", "count(*) over (partition by a order by k)", "f(a)[0]", "m['k'].x", "s.x.y[1]", "interval '1-2' year to month",
    "case a when k | 1 then b end", "extract(year from a)", "try_cast(a as int)", "sum(a) filter (where a or k)", "1e3", "r'x'",
    "lag(a) ignore nulls over (order by k)", "transform(arr, x -> x | a)", "cast(a as decimal(5, 2))", "if(a, b, k)", "-1", "array[0]",
)  # fmt: skip
_OPERATORS = (
    "+", "-", "*", "/", "%", "div", "||", "&", "|", "^", "<<", ">>", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "and", "or",
)  # fmt: skip


class Draw:
    """Queries by seed."""

    def __init__(self, seed: int) -> None:
        self.by = Random(seed)

    def chance(self, share: float) -> bool:
        return self.by.random() < share

    def expression(self, depth: int) -> str:
        """Any operators in a row, whatever the types: to be parsed and never run."""
        draw = self.by.random()
        if depth <= 0 or draw < 0.22:
            return self.by.choice(_ATOMS)
        if draw < 0.72:
            return f"{self.expression(depth - 1)} {self.by.choice(_OPERATORS)} {self.expression(depth - 1)}"
        if draw < 0.8:
            return self.by.choice(["- ", "+ ", "~ ", "not ", "! "]) + self.expression(depth - 1)
        one, no = self.expression(depth - 1), self.by.choice(["", "not "])
        other, last = self.expression(depth - 2), self.expression(depth - 2)
        message = self.by.choice([
            f"{no}between {other} and {last}", f"{no}in ({other}, {last})", f"{no}like {other}", f"{no}rlike {other}",
            f"{no}like any ('x', {other})", f"{no}like all ({other}, 'y%')", f"{no}ilike some ('x', b)", f"{no}like 'x!%' escape '!'",
            f"is {no}null", f"is {no}true", f"is {no}false", f"is {no}distinct from {other}", f"{no}ilike {other}",
        ])  # fmt: skip
        return f"{one} {message}"

    def variants(self) -> list[str]:
        """Texts that are nearly one: a word moved, left out or put another way, of which some mean the same."""
        a, k = self.by.sample(["a", "k"], 2)
        n, m = self.by.choice(["1", "2"]), self.by.choice(["1", "2", "3"])
        signs = self.by.sample(["&", "|", "^", "+", "-", "*"], 2)
        kept = self.by.choice([f"{a} > {n}", f"{k} = {n}", f"{a} is not null", f"not {a} = {n}"])
        family = self.by.randrange(9)
        if family == 0:
            one = f"{a} {signs[0]} {n} {signs[1]} {k}"
            sides = [
                f"({a} {signs[0]} {n}) {signs[1]} {k}",
                f"{a} {signs[0]} ({n} {signs[1]} {k})",
                f"{k} {signs[1]} {n} {signs[0]} {a}",
            ]
            return [f"select {x} as x from t" for x in (one, *sides)]
        if family == 1:
            stages = [
                f"where {kept}",
                f"order by {a}, {k}, id |> limit {m}",
                f"select {a}, {k}, id",
                f"set {a} = {a} + {n}",
            ]
            orders = [self.by.sample(stages, len(stages)) for _ in range(4)]
            return ["from t |> " + " |> ".join(stages) for stages in orders]
        if family == 2:
            return [
                f"select {of} as {name} from t order by {by}, 1 limit {m}"
                for of in (f"- {a}", a) for name in (a, "x") for by in (name, f"t.{a}", f"- {name}", f"- t.{a}", "1")
            ]  # fmt: skip
        if family == 3:
            by = [f"order by {k}", f"order by {k}, id", f"order by {a}, {k}"]
            call = self.by.choice(["row_number()", "rank()", f"lag({a})", f"first_value({a})", f"sum({a})", "ntile(2)"])
            below = [
                "t",
                "(select * from t order by id)",
                "(select * from t order by id desc)",
                "(select * from t where true)",
            ]
            return [f"select id, {call} over ({o}) as n from {b}" for o in by for b in below]
        if family == 4:
            sets = ["union", "union all", "intersect", "except"]
            one, other = self.by.sample(sets, 2)
            p, q, r = f"select {a} from t", "select a from u", "select k from u"
            return [
                f"{p} {one} {q} {other} {r}",
                f"({p} {one} {q}) {other} {r}",
                f"{p} {one} ({q} {other} {r})",
                f"{p} {other} {r} {one} {q}",
            ]
        if family == 5:
            sides = ["", "left ", "right ", "full "]
            on = [f"t.{a} = u.{k}", f"t.{a} <=> u.{k}", f"t.{a} = u.{k} and u.v > {n}", f"t.{a} = u.{k} and t.id > {n}"]
            where = ["", " where u.v > 1", " where t.id > 1", " where u.v is null", f" where u.{k} is not null"]
            return [f"select t.id, u.v from t {s}join u on {o}{w}" for s in sides for o in on for w in where]
        if family == 6:
            bys = [k, f"{k}, {a}", f"{k} + 0", "x"]
            where = ["", f" where {k} > {n}", f" where {a} > {n}"]
            having = [
                "",
                f" having {k} > {n}",
                f" having count(*) > {n}",
                f" having sum({a}) > {n}",
                f" having max({a}) > {n}",
            ]
            return [
                f"select {k} as x, sum({a}) as {a} from t{w} group by {b}{h}"
                for w in where
                for b in bys[:2]
                for h in having
            ]
        if family == 7:
            p, q = f"{a} > {n}", f"{k} = {m}"
            return [f"select id from t where {c}" for c in (
                f"{p} and {q}", f"{q} and {p}", f"not (not {p} or not {q})", f"{p} and ({p} or {q})", p, f"({p}) = true",
                f"{p} and {a} is not null", f"({p}) is true", f"not ({p}) is false", f"({p}) is not false", f"not not {p}",
                f"coalesce({p}, false)", f"coalesce({p}, true)", f"if({p}, true, false)", f"case when {p} then {q} else false end",
                f"{p} and {p} or {p}", f"({p} and {q}) or ({p} and not {q})", f"({p}) <=> true", f"{a} >= {n} + 1", f"{a} not in ({n}) and {a} > 0",
            )]  # fmt: skip
        counts = [
            f"count_if({kept})", f"count(*) filter (where {kept})", f"sum(case when {kept} then 1 else 0 end)",
            f"count(case when {kept} then 1 end)", f"sum(if({kept}, 1, 0))", f"count(nullif({kept}, false))",
            f"sum(case when {kept} then 1 end)", f"count({kept})", f"count(case when {kept} then {k} end)",
            f"coalesce(sum(case when {kept} then 1 else 0 end), 0)", f"count(if({kept}, 1, 0))", f"bool_or({kept})",
            f"any({kept})", f"max({kept})", f"every({kept})", f"min({kept})", f"count({k}) filter (where {kept})",
        ]  # fmt: skip
        groups = ["", f" group by {k}"]
        return [f"select {count} as n from t{group}" for count in counts for group in groups]

    def number(self, depth: int, names: tuple[str, ...] = INTS) -> str:
        """An integer expression without needless parentheses: how it binds is the question."""
        if depth <= 0 or self.chance(0.3):
            return self.by.choice([*names, *names, "1", "2", "3", "-1"])
        draw = self.by.random()
        if draw < 0.7:
            left, sign, right = self.number(depth - 1, names), self.by.choice(_BITS), self.number(depth - 1, names)
            if sign in ("%", "div"):
                right = "3"
            if sign in ("<<", ">>", ">>>"):
                right = "1"
            if sign == "*":
                right = "2"
            return f"{left} {sign} {right}"
        if draw < 0.8:
            return f"{self.by.choice(['- ', '~ ', '+ '])}{self.number(depth - 1, names)}"
        if draw < 0.9:
            return f"({self.number(depth - 1, names)})"
        return f"coalesce({self.number(depth - 1, names)}, {self.number(depth - 1, names)})"

    def condition(self, depth: int, names: tuple[str, ...] = INTS) -> str:
        draw = self.by.random()
        if depth > 0 and draw < 0.35:
            return (
                f"{self.condition(depth - 1, names)} {self.by.choice(['and', 'or'])} {self.condition(depth - 1, names)}"
            )
        if depth > 0 and draw < 0.45:
            return f"{self.by.choice(['not ', '! '])}{self.condition(depth - 1, names)}"
        one, no = self.number(depth - 1, names), self.by.choice(["", "not "])
        if draw < 0.6:
            return f"{one} {self.by.choice(_COMPARED)} {self.number(depth - 1, names)}"
        if draw < 0.65:
            # comparisons are of one level, from left to right
            return f"{one} < {self.number(0, names)} {self.by.choice(_COMPARED)} ({self.number(0, names)} > 1)"
        if draw < 0.72:
            return f"{one} is {no}null"
        if draw < 0.8:
            return f"{one} {no}in (1, {self.number(0, names)}, 2)"
        if draw < 0.88:
            return f"{one} {no}between {self.number(0, names)} and {self.number(0, names)}"
        if draw < 0.94:
            return f"{one} is {no}distinct from {self.number(0, names)}"
        return (
            f"({self.condition(depth - 1, names)}) {self.by.choice(['is true', 'is not false', '= true', '<> false'])}"
        )

    def items(self, names: tuple[str, ...], least: int = 1) -> list[tuple[str, str]]:
        """(expression, alias) of a SELECT, which may name its sources' columns anew and its own aliases."""
        results: list[tuple[str, str]] = []
        free = list(NAMES)
        for _ in range(self.by.randint(least, 3)):
            alias = free.pop(self.by.randrange(len(free)))
            seen = (*names, *(name for _, name in results)) if self.chance(0.3) else names
            of = self.by.choice(names) if self.chance(0.3) else self.number(2, seen)
            results.append((of, alias))
        return results

    def order(self, outputs: list[str], names: tuple[str, ...]) -> str:
        """ORDER BY by whatever may be named, made total by all that is shown."""
        keys = []
        for _ in range(self.by.randint(1, 2)):
            of = self.by.choice(
                [*outputs, *names, str(self.by.randint(1, len(outputs))), f"- {self.by.choice(outputs)}"]
            )
            keys.append(of + self.by.choice(["", "", " desc", " nulls last", " desc nulls first"]))
        rest = [str(at + 1) for at in range(len(outputs))]
        return "order by " + ", ".join([*keys, *rest])

    def select(self, depth: int = 1) -> tuple[str, list[str]]:
        """A SELECT and the names it shows."""
        source, names = self.source(depth)
        where = f" where {self.condition(2, names)}" if self.chance(0.5) else ""
        draw = self.by.random()
        if draw < 0.3:
            return self._grouped(source, names, where)
        items = self.items(names)
        if draw < 0.45:
            over = f"order by {self.by.choice([*names, items[0][1]])}, {', '.join(names)}"
            part = f"partition by {self.by.choice(names)} " if self.chance(0.5) else ""
            call = self.by.choice(
                ["row_number()", "rank()", "count(*)", f"sum({self.by.choice(names)})", "dense_rank()"]
            )
            items.append((f"{call} over ({part}{over})", "n"))
        listed = ", ".join(of if of == alias and self.chance(0.5) else f"{of} as {alias}" for of, alias in items)
        outputs = [alias for _, alias in items]
        distinct = "distinct " if self.chance(0.15) else ""
        tail = ""
        if self.chance(0.5):
            seen = tuple(outputs) if distinct else names
            tail = f" {self.order(outputs, seen)}" + (f" limit {self.by.randint(1, 5)}" if self.chance(0.7) else "")
        return f"select {distinct}{listed} from {source}{where}{tail}", outputs

    def _grouped(self, source: str, names: tuple[str, ...], where: str) -> tuple[str, list[str]]:
        key, name = self.by.choice(names), self.by.choice(["x", "a", "k"])
        of = self.by.choice([key, f"{key} + 1", f"- {key}", f"{key} & 2"])
        by = self.by.choice([of, of, "1", name, "all"])
        more = self.by.choice([name_ for name_ in ("y", "b", "id", "k") if name_ != name])
        arg = self.by.choice(names)
        call = self.by.choice(
            ["count(*)", f"sum({arg})", f"max({arg} + {arg})", f"count_if({arg} > 1)", f"min({arg}) + 1"]
        )
        having = ""
        if self.chance(0.4):
            having = (
                f" having {self.by.choice([more, 'count(*)', name, call, f'max({arg})'])} > {self.by.randint(-1, 2)}"
            )
        tail = ""
        if self.chance(0.5):
            asked = self.by.choice([more, name, "1", call, f"- {more}", f"max({arg})"])
            tail = f" order by {asked}, 1, 2" + (f" limit {self.by.randint(1, 3)}" if self.chance(0.7) else "")
        return f"select {of} as {name}, {call} as {more} from {source}{where} group by {by}{having}{tail}", [name, more]

    def source(self, depth: int) -> tuple[str, tuple[str, ...]]:
        draw = self.by.random()
        if depth <= 0 or draw < 0.5:
            return ("t", INTS) if self.chance(0.7) else ("u", ("a", "k", "v"))
        if draw < 0.75:
            sql, outputs = self.query(depth - 1)
            return f"({sql})" + self.by.choice(["", " as q"]), tuple(name for name in outputs if name != "b") or ("1",)
        side = self.by.choice(["", "left ", "full ", "right ", "left semi ", "left anti ", "cross "])
        on = "" if side == "cross " else " on t.a = u.a" if self.chance(0.5) else " on t.k < u.v or t.a <=> u.a"
        if side in ("left semi ", "left anti "):
            return f"t {side}join u{on}", INTS
        return f"t {side}join u{on}", ("t.a", "u.k", "v", "id")

    def united(self, depth: int) -> tuple[str, list[str]]:
        """Set operations of several levels: INTERSECT binds tighter."""
        parts = []
        for _ in range(self.by.randint(2, 3)):
            of, name = self.by.choice(["t", "u"]), self.by.choice(["a", "k"])
            where = f" where {self.condition(1, ('a', 'k'))}" if self.chance(0.3) else ""
            parts.append(f"select {name} from {of}{where}")
        sql = parts[0]
        for part in parts[1:]:
            how = self.by.choice(["union", "union all", "intersect", "except", "minus", "intersect all", "except all"])
            sql += f" {how} {part}"
        name = parts[0].split()[1]
        return sql + (f" order by {name} limit {self.by.randint(1, 4)}" if self.chance(0.4) else ""), [name]

    def query(self, depth: int = 1) -> tuple[str, list[str]]:
        draw = self.by.random()
        if draw < 0.5:
            return self.select(depth)
        return self.piped(depth) if draw < 0.8 else self.united(depth)

    def statement(self) -> str:
        """Of all forms."""
        return shaped(self) if self.chance(0.5) else self.query()[0]

    def piped(self, depth: int) -> tuple[str, list[str]]:
        """FROM … and one to four operators."""
        start, names = self.source(depth - 1)
        sql, names, alias = (
            f"from {start}",
            tuple(n for n in names if "." not in n),
            start if start in ("t", "u") else "",
        )
        outputs = list(names)
        if "join" in start:
            items = self.items(names or ("v",))
            sql += f" |> select {', '.join(f'{of} as {name}' for of, name in items)}"
            outputs, alias = [name for _, name in items], ""
        elif start in ("t", "u"):
            sql += f" |> select {', '.join(names)}" if self.chance(0.5) else ""
            outputs = list(names) if "select" in sql else list(TABLES[start])
        for _ in range(self.by.randint(1, 4)):
            numbers = tuple(name for name in outputs if name not in ("b", "c", "flag", "w"))
            if not numbers:
                break
            message, outputs, alias = self._operator(outputs, numbers, alias)
            sql += f" |> {message}"
        return sql, outputs

    def _operator(self, outputs: list[str], numbers: tuple[str, ...], alias: str) -> tuple[str, list[str], str]:
        draw = self.by.randrange(12)
        every = ", ".join(str(at + 1) for at in range(len(outputs)))
        match draw:
            case 0:
                items = self.items(numbers)
                distinct = self.by.choice(["", "distinct "])
                return (
                    f"select {distinct}{', '.join(f'{of} as {name}' for of, name in items)}",
                    [n for _, n in items],
                    "",
                )
            case 1 | 2:
                seen = f"{alias}.{numbers[0]} > 0 or " if alias and self.chance(0.4) else ""
                return f"where {seen}{self.condition(1, numbers)}", outputs, alias
            case 3 if free := [name for name in ("x", "y", "z") if name not in outputs]:
                return f"extend {self.number(2, numbers)} as {free[0]}", [*outputs, free[0]], ""
            case 4:
                return f"set {numbers[0]} = {self.number(1, numbers)}", outputs, ""
            case 5 if len(outputs) > 1:
                gone = self.by.choice(outputs)
                return f"drop {gone}", [name for name in outputs if name != gone], ""
            case 6:
                return "as q", outputs, "q"
            case 7:
                return f"order by {self.by.choice(numbers)} desc, {every}", outputs, ""
            case 8:
                # what comes before has no order of its own to be asked for
                return f"order by {every} |> limit {self.by.randint(1, 4)}", outputs, ""
            case 9:
                key = self.by.choice(numbers)
                call = self.by.choice(
                    ["count(*)", f"sum({self.by.choice(numbers)})", f"max({self.by.choice(numbers)})"]
                )
                if self.chance(0.3):
                    return f"aggregate {call} as n", ["n"], ""
                return f"aggregate {call} as n group by {key}" + self.by.choice(["", " as g"]), self._keys(key), ""
            case 10 if len(outputs) == 1:
                how = self.by.choice(["union all", "union", "except", "intersect"])
                return f"{how} (select a from u)", outputs, ""
            case 11 if alias:
                return f"join (select v, w from u) as j on {alias}.{numbers[0]} = j.v", [*outputs, "v", "w"], ""
        return f"where {self.condition(1, numbers)}", outputs, alias

    def _keys(self, key: str) -> list[str]:
        return ["n"]
