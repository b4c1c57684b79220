"""A table's rows as PostgreSQL's logical replication sends them: packages of rows under one list of columns.

source  PostgreSQL 15 documentation, 55.9 Logical Replication Message Formats; 55.4 Streaming Replication Protocol
"""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from psycopg import pq

_EPOCH = 946_684_800  # 2000-01-01 in Unix seconds
_PARSERS: dict[int, Any] = {
    16: lambda text: text == "t",
    20: int, 21: int, 23: int,
    700: float, 701: float,
    1082: date.fromisoformat,
    1114: datetime.fromisoformat,
    1184: lambda text: datetime.fromisoformat(text + ("" if len(text.rpartition("+")[2]) > 2 else ":00")),
    1700: Decimal,
}  # fmt: skip


@dataclass(frozen=True)
class Relation:
    table: str
    columns: tuple[str, ...]
    types: tuple[int, ...]


@dataclass
class Package:
    """Rows of one table under one list of columns, in commit order.

    rows  (values in the columns' order, True where the row was deleted, where the stream has it: later changes of a row are higher)
    end   the position that may be confirmed once they are stored
    """

    relation: Relation
    rows: list[tuple[tuple[Any, ...], bool, int]] = field(default_factory=list)
    end: int = 0


class Reader:
    """Reads `data`, whose start it has passed."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 1

    def number(self, form: str) -> int:
        (result,) = struct.unpack_from(f"!{form}", self.data, self.at)
        self.at += struct.calcsize(f"!{form}")
        return int(result)

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        message = self.data[self.at : end].decode()
        self.at = end + 1
        return message

    def values(self, types: tuple[int, ...]) -> tuple[Any, ...]:
        results: list[Any] = []
        for oid in types[: self.number("H")]:
            kind = chr(self.number("B"))
            if kind != "t":
                results.append(None)
                continue
            size = self.number("I")
            text = self.data[self.at : self.at + size].decode()
            self.at += size
            results.append(_PARSERS.get(oid, str)(text))
        return tuple(results)


class Stream:
    """One replication slot, read from where it was last confirmed."""

    def __init__(self, dsn: str, slot: str, publication: str) -> None:
        self._connection = pq.PGconn.connect(f"{dsn} replication=database".encode())
        assert self._connection.status == pq.ConnStatus.OK, self._connection.error_message
        options = f"(proto_version '1', publication_names '{publication}')"
        answer = self._connection.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 {options}".encode())
        assert answer.status == pq.ExecStatus.COPY_BOTH, answer.error_message
        self._relations: dict[int, Relation] = {}

    def packages(self, most_rows: int = 500, quiet_seconds: float = 0.1) -> Iterator[Package | None]:
        """Packages as they are complete; None while nothing comes."""
        package: Package | None = None
        last = time.monotonic()
        while True:
            size, data = self._connection.get_copy_data(1)
            if size == 0:
                if package is not None and package.end and time.monotonic() - last > quiet_seconds:
                    yield package
                    package = None
                if package is None:
                    yield None
                time.sleep(0.01)
                self._connection.consume_input()
                continue
            if size < 0:
                raise RuntimeError(f"the stream ended: {self._connection.error_message.decode()}")
            message = bytes(data)
            if message[:1] == b"k":
                if message[17]:
                    self.confirm(0)
                continue
            inner, position = message[25:], struct.unpack_from("!Q", message, 1)[0]
            last = time.monotonic()
            for item in self._taken(inner, position):
                if isinstance(item, int):
                    if package is not None:
                        package.end = item
                        if len(package.rows) >= most_rows:
                            yield package
                            package = None
                    continue
                relation, row = item
                if package is not None and package.relation is not relation:
                    yield package
                    package = None
                package = package or Package(relation)
                package.rows.append(row)

    def confirm(self, position: int) -> None:
        """Tell PostgreSQL what is stored."""
        now = int((time.time() - _EPOCH) * 1e6)
        self._connection.put_copy_data(struct.pack("!cQQQQB", b"r", position, position, position, now, 0))
        self._connection.flush()

    def close(self) -> None:
        self._connection.finish()

    def _taken(self, message: bytes, position: int) -> Iterator[Any]:
        reader, kind = Reader(message), message[:1]
        if kind == b"R":
            number = reader.number("I")
            schema, table = reader.text(), reader.text()
            reader.number("B")
            columns, types = [], []
            for _ in range(reader.number("H")):
                reader.number("B")
                columns.append(reader.text())
                types.append(reader.number("I"))
                reader.number("I")
            self._relations[number] = Relation(f"{schema}.{table}", tuple(columns), tuple(types))
        elif kind in (b"I", b"U", b"D"):
            relation = self._relations[reader.number("I")]
            what = chr(reader.number("B"))
            if kind == b"U" and what in "KO":
                reader.values(relation.types)
                reader.number("B")
            yield relation, (reader.values(relation.types), kind == b"D", position)
        elif kind == b"C":
            reader.number("B")
            reader.number("Q")
            yield reader.number("Q")
