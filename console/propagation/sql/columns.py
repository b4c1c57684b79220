"""A column's definition, as in CREATE TABLE and ADD COLUMN.

source  PostgreSQL 15 documentation, CREATE TABLE (column_constraint)
"""

from dataclasses import dataclass, field
from typing import Final

from console.propagation.sql.cursor import Cursor
from console.propagation.sql.defaults import Computed, literal
from console.propagation.sql.postgres import UserTypes, WrittenType, read_type
from console.propagation.tables import PgColumn

_CONSTRAINTS: Final = (
    "collate", "constraint", "not", "null", "check", "default", "generated", "unique", "primary", "references",
    "deferrable", "initially", "storage", "compression", "options", "enforced",
)  # fmt: skip
IDENTITY: Final = "identity"
GENERATED: Final = "generated"
SERIAL: Final = "serial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A CHECK.

    name      "" where PostgreSQL chooses it
    columns   those that it provably keeps from being NULL
    mentions  every name in its condition
    valid     False for NOT VALID, which does not cover existing rows
    own       NO INHERIT: tables below do not inherit it
    """

    name: str
    columns: frozenset[str]
    mentions: frozenset[str]
    valid: bool = True
    own: bool = False


@dataclass(kw_only=True)
class Definition:
    """A column being read.

    nullable  neither it nor its key forbids NULL; its type and its checks may
    key       its definition has PRIMARY KEY
    reads     of a generated column: every name in its expression
    """

    name: str
    written: WrittenType
    nullable: bool = True
    default: str | None = None
    computed: str = ""
    key: bool = False
    checks: list[Check] = field(default_factory=list)
    reads: frozenset[str] = frozenset()

    @property
    def column(self) -> PgColumn:
        kept = self.written.required or any(self.name in check.columns for check in self.checks if check.valid)
        nullable = self.nullable and not kept
        return PgColumn(
            name=self.name,
            postgres=self.written.postgres,
            type=self.written.type,
            nullable=nullable,
            default=self.default,
            computed=self.computed,
        )


def read_column(cursor: Cursor, types: UserTypes, schema: str) -> Definition:
    """One whole definition, up to the end of the cursor.

    raises  NotUnderstood
    """
    name = cursor.name()
    written = read_type(cursor, types, schema)
    definition = Definition(name=name, written=written, nullable=not written.serial)
    definition.default, definition.computed = written.default, SERIAL if written.serial else written.computed
    while not cursor.done:
        _constraint(cursor, definition, types, schema)
    return definition


def read_default(cursor: Cursor, definition: Definition, types: UserTypes, schema: str) -> None:
    """Read the next expression, up to the next constraint, as the definition's default."""
    start = cursor.at
    if cursor.done:
        raise cursor.wrong("expected a default")
    if cursor.sees_any(*_CONSTRAINTS):
        cursor.at += 1  # `DEFAULT NULL`: a value here, elsewhere the beginning of a constraint
    cursor.until(*_CONSTRAINTS)
    expression = Cursor(cursor.statement, start, cursor.at)
    try:
        definition.default, definition.computed = literal(expression, definition.written, types, schema), ""
    except Computed as computed:
        definition.default, definition.computed = None, str(computed)


def _constraint(cursor: Cursor, definition: Definition, types: UserTypes, schema: str) -> None:
    name = cursor.name() if cursor.take("constraint") else ""
    if cursor.take("not", "null"):
        definition.nullable = False
        cursor.take("no", "inherit")
    elif cursor.take("null"):
        pass
    elif cursor.take("default"):
        read_default(cursor, definition, types, schema)
    elif cursor.take("generated"):
        _generated(cursor, definition)
    elif cursor.take("check"):
        definition.checks.append(read_check(cursor, name))
    elif cursor.take("primary", "key"):
        definition.nullable, definition.key = False, True
        _index(cursor)
    elif cursor.take("unique"):
        cursor.take("nulls", "distinct")
        cursor.take("nulls", "not", "distinct")
        _index(cursor)
    elif cursor.take("references"):
        _references(cursor)
    elif cursor.take("collate"):
        cursor.qualified()
    elif cursor.take("storage") or cursor.take("compression"):
        cursor.name()
    elif cursor.take("options"):
        cursor.bracketed()
    elif not _deferral(cursor):
        raise cursor.wrong("expected a constraint of the column")


def _generated(cursor: Cursor, definition: Definition) -> None:
    if not cursor.take("always"):
        cursor.expect("by", "default")
    cursor.expect("as")
    if cursor.take("identity"):
        definition.nullable, definition.default, definition.computed = False, None, IDENTITY
        if cursor.sees("("):
            cursor.bracketed()
        return
    definition.reads = mentioned(cursor.bracketed())
    definition.default, definition.computed = None, GENERATED
    if not cursor.take("stored"):
        cursor.take("virtual")


def _index(cursor: Cursor) -> None:
    if cursor.take("include"):
        cursor.bracketed()
    if cursor.take("with"):
        cursor.bracketed()
    if cursor.take("using", "index", "tablespace"):
        cursor.name()


def _references(cursor: Cursor) -> None:
    cursor.qualified()
    if cursor.sees("("):
        cursor.bracketed()
    if cursor.take("match"):
        cursor.name()
    while cursor.take("on"):
        if not (cursor.take("delete") or cursor.take("update")):
            raise cursor.wrong("expected DELETE or UPDATE")
        if cursor.take("no", "action") or cursor.take("restrict") or cursor.take("cascade"):
            continue
        if not (cursor.take("set", "null") or cursor.take("set", "default")):
            raise cursor.wrong("expected what happens ON DELETE or UPDATE")
        if cursor.sees("("):
            cursor.bracketed()


def _deferral(cursor: Cursor) -> bool:
    return (
        cursor.take("deferrable")
        or cursor.take("not", "deferrable")
        or cursor.take("initially", "deferred")
        or cursor.take("initially", "immediate")
        or cursor.take("enforced")
        or cursor.take("not", "enforced")
    )


def read_check(cursor: Cursor, name: str) -> Check:
    """From behind CHECK."""
    condition = cursor.bracketed()
    mentions = mentioned(condition)
    columns = required_by(condition)
    own = cursor.take("no", "inherit")
    valid = not cursor.take("not", "valid")
    return Check(name=name, columns=columns, mentions=mentions, valid=valid, own=own or cursor.take("no", "inherit"))


def mentioned(expression: Cursor) -> frozenset[str]:
    """Every name in an expression that is neither a function nor a type: possibly a column of the table."""
    words = expression.statement.words[expression.at : expression.end]
    other = {at for at, word in enumerate(words[1:]) if word.kind == "sign" and word.text in "(."}
    other |= {at for at, word in enumerate(words, 1) if word.kind != "text" and word.text in ("::", "as")}
    return frozenset(w.text for at, w in enumerate(words) if w.kind in ("word", "name") and at not in other)


def required_by(check: Cursor) -> frozenset[str]:
    """The columns that a CHECK's condition provably keeps from being NULL: `(a IS NOT NULL) AND …`."""
    names: set[str] = set()
    while not check.done:
        part = check.until("and", "or")
        if part.sees("("):
            inside = part.bracketed()
            names |= required_by(inside) if part.done else set()
        else:
            word = part.peek()
            part.at += 1
            if word is not None and word.kind in ("word", "name") and part.take("is", "not", "null") and part.done:
                names.add(word.text)
        if check.take("or"):
            return frozenset()
        check.take("and")
    return frozenset(names)
