"""pgroll's operations as the SQL that PostgreSQL is given for them."""

from typing import Any


def statements(operations: list[dict[str, Any]]) -> str:
    return "".join(
        f"{sql};\n" for operation in operations for kind, spec in operation.items() for sql in _sql(kind, spec)
    )


def _sql(kind: str, spec: dict[str, Any]) -> list[str]:
    table = spec.get("table", "")
    match kind:
        case "sql":
            return [spec["up"].rstrip().rstrip(";")]
        case "create_table":
            parts = [_column(column) for column in spec["columns"]]
            keys = [column["name"] for column in spec["columns"] if column.get("pk")]
            parts += [f"PRIMARY KEY ({', '.join(keys)})"] if keys else []
            parts += [_constraint(constraint) for constraint in spec.get("constraints", [])]
            return [f"CREATE TABLE {spec['name']} ({', '.join(parts)})"]
        case "drop_table":
            return [f"DROP TABLE {spec['name']}"]
        case "rename_table":
            return [f"ALTER TABLE {spec['from']} RENAME TO {spec['to']}"]
        case "add_column":
            return [f"ALTER TABLE {table} ADD COLUMN {_column(spec['column'])}"]
        case "drop_column":
            return [f"ALTER TABLE {table} DROP COLUMN {spec['column']}"]
        case "rename_column":
            return [f"ALTER TABLE {table} RENAME COLUMN {spec['from']} TO {spec['to']}"]
        case "rename_constraint":
            return [f"ALTER TABLE {table} RENAME CONSTRAINT {spec['from']} TO {spec['to']}"]
        case "drop_constraint" | "drop_multicolumn_constraint":
            return [f"ALTER TABLE {table} DROP CONSTRAINT {spec['name']}"]
        case "create_constraint":
            return [f"ALTER TABLE {table} ADD {_constraint(spec)}"]
        case "set_replica_identity":
            return [f"ALTER TABLE {table} REPLICA IDENTITY USING INDEX {spec['identity']['index']}"]
        case "create_index":
            return [_index(spec)]
        case "drop_index":
            return [f"DROP INDEX CONCURRENTLY {spec['name']}"]
        case "alter_column":
            return _altered(table, spec)
    raise AssertionError(kind)


def _column(column: dict[str, Any]) -> str:
    text = f"{column['name']} {column['type']}"
    if "generated" in column:
        text += f" GENERATED {column['generated']['identity']['user_specified_values']} AS IDENTITY"
    text += "" if column.get("nullable") or column.get("pk") else " NOT NULL"
    text += f" DEFAULT {column['default']}" if column.get("default") else ""
    text += " UNIQUE" if column.get("unique") else ""
    if "check" in column:
        text += f" CONSTRAINT {column['check']['name']} CHECK ({column['check']['constraint']})"
    if "references" in column:
        text += _references(column["references"])
    return text


def _references(spec: dict[str, Any]) -> str:
    columns = spec.get("columns") or [spec["column"]]
    text = f" REFERENCES {spec['table']} ({', '.join(columns)})"
    return text + (f" ON DELETE {spec['on_delete']}" if "on_delete" in spec else "")


def _constraint(spec: dict[str, Any]) -> str:
    columns = ", ".join(spec.get("columns", []))
    match spec["type"]:
        case "primary_key":
            body = f"PRIMARY KEY ({columns})"
        case "unique":
            body = f"UNIQUE ({columns})"
        case "check":
            body = f"CHECK ({spec['check']})"
        case "exclude":
            exclude = spec["exclude"]
            body = f"EXCLUDE USING {exclude['index_method']} ({exclude['elements']}) WHERE ({exclude['predicate']})"
        case _:
            body = f"FOREIGN KEY ({columns}){_references(spec['references'])}"
    return f"CONSTRAINT {spec['name']} {body}"


def _index(spec: dict[str, Any]) -> str:
    columns = ", ".join(" ".join((c["column"], c.get("opclass", {}).get("name", ""))).strip() for c in spec["columns"])
    text = f"CREATE {'UNIQUE ' if spec.get('unique') else ''}INDEX CONCURRENTLY {spec['name']} ON {spec['table']}"
    text += f" USING {spec['method']}" if "method" in spec else ""
    text += f" ({columns})"
    text += f" WITH ({spec['storage_parameters']})" if "storage_parameters" in spec else ""
    return text + (f" WHERE {spec['predicate']}" if "predicate" in spec else "")


def _altered(table: str, spec: dict[str, Any]) -> list[str]:
    column, results = f"ALTER TABLE {table} ALTER COLUMN {spec['column']}", []
    if "type" in spec:
        results.append(f"{column} TYPE {spec['type']} USING ({spec['up']})")
    if "nullable" in spec:
        results.append(f"{column} {'DROP' if spec['nullable'] else 'SET'} NOT NULL")
    if "default" in spec:
        results.append(
            f"{column} DROP DEFAULT" if spec["default"] is None else f"{column} SET DEFAULT {spec['default']}"
        )
    if "unique" in spec:
        results.append(f"ALTER TABLE {table} ADD CONSTRAINT {spec['unique']['name']} UNIQUE ({spec['column']})")
    if "check" in spec:
        check = spec["check"]
        results.append(f"ALTER TABLE {table} ADD CONSTRAINT {check['name']} CHECK ({check['constraint']}) NOT VALID")
    if "references" in spec:
        reference = spec["references"]
        key = f"FOREIGN KEY ({spec['column']}){_references(reference)} NOT VALID"
        results.append(f"ALTER TABLE {table} ADD CONSTRAINT {reference['name']} {key}")
    if "comment" in spec:
        text = "NULL" if spec["comment"] is None else "'" + spec["comment"].replace("'", "''") + "'"
        results.append(f"COMMENT ON COLUMN {table}.{spec['column']} IS {text}")
    return results
