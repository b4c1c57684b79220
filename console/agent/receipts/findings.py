"""The subject of a check and its finding in `verify`."""

from dataclasses import dataclass

from console.model.receipt import Finding


@dataclass(frozen=True, slots=True)
class Subject:
    """One check of one step; `what` as in `Finding`."""

    table: str
    step: str
    what: str

    def finding(self, ok: bool | None, detail: str, days: tuple[str, ...] = ()) -> Finding:
        """The result of the check; ok is None if it is no longer possible."""
        return Finding(table=self.table, step=self.step, what=self.what, ok=ok, detail=detail, days=days)
