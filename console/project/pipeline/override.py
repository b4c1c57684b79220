"""A region's overrides, applied to a pipeline's files; every difference is recorded with its place."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from console.errors import Problem
from console.model.pipeline import Override
from console.project.names import did_you_mean
from console.project.pipeline.folder import Folder
from console.project.yaml import Document, Keys


class _Overlay:
    """The folder being changed, with the overrides and problems collected so far."""

    def __init__(self, folder: Folder, source: Document) -> None:
        self.folder = replace(folder, head=folder.head.copy(), tables=dict(folder.tables))
        self.source = source
        self.at: Keys = ("overrides", folder.name)
        self.overrides: list[Override] = []
        self.problems: list[Problem] = []

    def wrong(self, message: str, path: Keys, hint: str = "") -> None:
        self.problems.append(Problem(code="P034", message=message, where=self.source.place(path, key=True), hint=hint))

    def record(self, name: str, base: str, path: Keys, value: str | None = None) -> None:
        text = self.source.written(path) if value is None else value
        self.overrides.append(Override(path=name, base=base, value=text, where=self.source.place(path, key=True)))

    def table(self, name: str, changes: Mapping[str, Any]) -> None:
        at: Keys = (*self.at, "tables", name)
        if name not in self.folder.tables:
            hint = did_you_mean(name, self.folder.tables, "tables")
            self.wrong(f"overrides: pipeline {self.folder.name} has no table `{name}`", at, hint)
            return
        table = self.folder.tables[name] = self.folder.tables[name].copy()
        for key in changes:
            path: Keys = (*at, key)
            if key != "columns":
                self.record(f"tables.{name}.{key}", table.written((key,)), path)
                table.put((key,), self.source, path)
            elif not isinstance(changes[key], dict):
                self.wrong("overrides: expected columns as {+new: type, -old: , changed: type}", path)
            elif isinstance(table.get(("columns",)), dict):
                for column in changes[key]:
                    self.column(table, name, column, path)

    def column(self, table: Document, name: str, key: str, at: Keys) -> None:
        path: Keys = (*at, key)
        column = key[1:] if key[:1] in "+-" else key
        target: Keys = ("columns", column)
        known = table.get(("columns",))
        base = table.written(target)
        if key.startswith("+") and column in known:
            self.wrong(f"overrides: {name} has a column `{column}` already", path, f"write `{column}` to change it")
        elif not key.startswith("+") and column not in known:
            hint = did_you_mean(column, known, "columns")
            hint = hint if "?" in hint else f"write `+{column}` to add it"
            self.wrong(f"overrides: {name} has no column `{column}`", path, hint)
        elif key.startswith("-"):
            if self.source.get(path) is not None:
                self.wrong(f"overrides: `{key}` removes the column and takes no value", path, f"write `{key}:`")
            table.drop(target)
            self.record(f"tables.{name}.columns.{column}", base, path, "")
        else:
            self.record(f"tables.{name}.columns.{column}", base, path)
            self.put_column(table, target, path)

    def put_column(self, table: Document, target: Keys, path: Keys) -> None:
        """A changed column keeps the properties that the override does not mention."""
        old, new = table.get(target), self.source.get(path)
        if isinstance(old, dict) and isinstance(new, str):
            table.put((*target, "type"), self.source, path)
        elif isinstance(old, dict) and isinstance(new, dict):
            for key in new:
                table.put((*target, key), self.source, (*path, key))
        else:
            bare = old if isinstance(old, str) and isinstance(new, dict) and "type" not in new else None
            kept = table.copy()
            table.put(target, self.source, path)
            if bare is not None:
                table.put((*target, "type"), kept, target)

    def variable(self, name: str) -> None:
        known = self.folder.head.get(("variables",))
        path: Keys = (*self.at, "variables", name)
        if not isinstance(known, dict) or name not in known:
            hint = did_you_mean(name, known if isinstance(known, dict) else (), "variables")
            message = f"overrides: pipeline {self.folder.name} has no variable `{name}`"
            self.wrong(message, path, hint or "declare it in pipeline.yaml")
            return
        self.record(f"variables.{name}", self.folder.head.written(("variables", name)), path)
        self.folder.head.put(("variables", name), self.source, path)


def overlay(
    folder: Folder, source: Document, tables: Mapping[str, Mapping[str, Any]], variables: Mapping[str, Any]
) -> tuple[Folder, tuple[Override, ...], list[Problem]]:
    """A pipeline's files with one region's overrides.

    source  the region's document; tables, variables: its `overrides.<pipeline>`
    returns the changed folder (the given one stays as it is), each difference, and what cannot be overridden
    """
    laid = _Overlay(folder, source)
    for name, changes in tables.items():
        laid.table(name, changes)
    for name in variables:
        laid.variable(name)
    return laid.folder, tuple(sorted(laid.overrides, key=lambda o: o.path)), laid.problems
