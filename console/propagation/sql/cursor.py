"""A place in one statement, moving forward; unexpected words raise NotUnderstood."""

from dataclasses import dataclass

from console.propagation.sql.lexer import NotUnderstood, SqlStatement, Token

Name = tuple[str, str]  # schema ("" where none is written), name


@dataclass
class Cursor:
    """Reads a statement's words. `end` is the index where its part of the statement ends."""

    statement: SqlStatement
    at: int
    end: int

    @classmethod
    def over(cls, statement: SqlStatement) -> "Cursor":
        return cls(statement, 0, len(statement.words))

    @property
    def done(self) -> bool:
        return self.at >= self.end

    def peek(self, ahead: int = 0) -> Token | None:
        at = self.at + ahead
        return self.statement.words[at] if at < self.end else None

    def sees(self, *texts: str) -> bool:
        """Whether the next words are these keywords or signs."""
        for ahead, text in enumerate(texts):
            word = self.peek(ahead)
            if word is None or word.kind not in ("word", "sign") or word.text != text:
                return False
        return True

    def sees_any(self, *texts: str) -> bool:
        return any(self.sees(text) for text in texts)

    def take(self, *texts: str) -> bool:
        """Skip these keywords or signs if they are next."""
        if not self.sees(*texts):
            return False
        self.at += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        if not self.take(*texts):
            raise self.wrong(f"expected {' '.join(texts).upper()}")

    def name(self) -> str:
        """One identifier: in lower case unless it is quoted."""
        word = self.peek()
        if word is None or word.kind not in ("word", "name"):
            raise self.wrong("expected a name")
        self.at += 1
        return word.text

    def qualified(self) -> Name:
        """`name`, `schema.name` or `database.schema.name`."""
        parts = [self.name()]
        while self.take("."):
            parts.append(self.name())
        if len(parts) > 3:
            raise self.wrong("a name of more than three parts")
        return (parts[-2] if len(parts) > 1 else "", parts[-1])

    def number(self) -> int:
        sign = -1 if self.take("-") else 1
        word = self.peek()
        if word is None or word.kind != "number" or not word.text.isdecimal() or len(word.text) > 9:
            raise self.wrong("expected a whole number")
        self.at += 1
        return sign * int(word.text)

    def text(self) -> str:
        word = self.peek()
        if word is None or word.kind != "text":
            raise self.wrong("expected a text in quotes")
        self.at += 1
        return word.text

    def bracketed(self) -> "Cursor":
        """The inside of the next brackets; this cursor moves behind them."""
        start = self.at
        self.expect("(")
        depth = 1
        while depth:
            word = self.peek()
            if word is None:
                raise NotUnderstood("a bracket stays open", self.statement.words[start].line)
            depth += {"(": 1, ")": -1}.get(word.text, 0) if word.kind == "sign" else 0
            self.at += 1
        return Cursor(self.statement, start + 1, self.at - 1)

    def until(self, *texts: str) -> "Cursor":
        """The part before the first of these keywords or signs outside brackets and CASE … END; this cursor moves there."""
        start = self.at
        depth = 0
        while (word := self.peek()) is not None:
            if depth == 0 and self.sees_any(*texts):
                break
            if word.kind == "sign":
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word.text, 0)
            elif word.kind == "word":
                depth += {"case": 1, "end": -1}.get(word.text, 0)
            self.at += 1
        return Cursor(self.statement, start, self.at)

    def parts(self) -> "list[Cursor]":
        """The parts between the commas outside brackets."""
        parts = []
        while not self.done:
            parts.append(self.until(","))
            if self.take(",") and self.done:
                raise self.wrong("there is nothing behind the comma")
        return parts

    def wrong(self, message: str, hint: str = "") -> NotUnderstood:
        """The error to raise at the next word."""
        word = self.peek() or self.statement.words[min(self.end, len(self.statement.words)) - 1]
        instead = f", found {word.text[:40]!r}" if self.peek() else ", found the end"
        return NotUnderstood(f"{message}{instead}", word.line, word.column, hint)

    def __str__(self) -> str:
        return self.statement.between(self.at, self.end)
