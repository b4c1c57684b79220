"""A store's operations as a person reads them."""

from typing import assert_never

from console.propagation.translate.operations import (
    AddField,
    ChangeField,
    DropField,
    LoosenField,
    RenameFields,
    Rewrite,
    StoreOperation,
    StoreStatement,
)


def what(operation: StoreOperation) -> str:
    """An operation as a person reads it: SQL for ClickHouse, words else."""
    match operation:
        case StoreStatement():
            return operation.sql
        case AddField():
            default = f" default {operation.default}" if operation.default is not None else ""
            return f"add {operation.name} {operation.type}{default}"
        case DropField():
            return f"drop {operation.name}"
        case RenameFields():
            return "rename " + ", ".join(f"{old} → {new}" for old, new in operation.pairs)
        case ChangeField():
            return f"change {operation.name} to {operation.type}"
        case LoosenField():
            return f"let {operation.name} be NULL"
        case Rewrite():
            kept = [
                f"{name} {word}{'' if name == source else f' from {source}'}"
                for name, source, word in operation.columns
            ]
            return f"rewrite with {', '.join(kept)}"
        case _:
            assert_never(operation)


def why(operation: StoreOperation) -> str:
    """The effect on existing rows, in one sentence."""
    match operation:
        case StoreStatement() | Rewrite():
            return operation.why
        case DropField():
            return "metadata, no row is rewritten; the values stay unread in old files"
        case AddField(default=str()):
            return "older rows get the default: by metadata if the format has defaults, otherwise they are rewritten"
        case AddField() | RenameFields() | ChangeField() | LoosenField():
            return "metadata, no row is rewritten"
        case _:
            assert_never(operation)
