"""PostgreSQL's SQL as tokens with their places, split into statements. Knows no grammar beyond quotes and brackets.

source  PostgreSQL 15 documentation, §4.1 (lexical structure); psql's own lines as in its reference page
"""

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

Kind = Literal["word", "name", "text", "bits", "number", "sign", "mark"]

_LONGEST: Final = 63  # bytes of a name
_SMALL: Final = {ord(letter): letter.lower() for letter in string.ascii_uppercase}  # no other letter is folded in UTF-8
_DEEPEST: Final = 200  # nested brackets; each level is read again by the one around it
_SPACE: Final = re.compile(r"[ \t\n\r\f]+")
_LINE_COMMENT: Final = re.compile(r"--[^\n\r]*")
# to PostgreSQL every non-ASCII character is a letter, a no-break space included
_LETTER: Final = r"[A-Za-z_\x80-\U0010ffff]"
_WORD: Final = re.compile(rf"{_LETTER}(?:{_LETTER}|[0-9$])*")
_NUMBER: Final = re.compile(r"(?a:0[xX][0-9a-fA-F_]+|(?:\d[\d_]*(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
_DOLLAR: Final = re.compile(rf"\$(?:{_LETTER}(?:{_LETTER}|[0-9])*)?\$")
_PLAIN: Final = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED: Final = re.compile(r"[eE]'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_REST: Final = re.compile(_ESCAPED.pattern.removeprefix("[eE]"), re.DOTALL)
_BITS: Final = re.compile(r"[bBxX]'([0-9a-fA-F]*)'")
_NATIONAL: Final = re.compile(r"[nN]'((?:[^']|'')*)'")
# a text continued behind a line break is one text
_MORE: Final = re.compile(r"[ \t\f]*[\n\r](?:[ \t\n\r\f]|--[^\n\r]*[\n\r])*(?=')")
_UNICODE: Final = re.compile(r"[uU]&[\"']")
_NAME: Final = re.compile(r'"((?:[^"]|"")+)"')
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
# comments by which tools divide a file into an up part and, after the second mark, a down part (goose, sql-migrate, dbmate,
# rambler, node-pg-migrate, tern, MyBatis, and headings of one word); bare of the signs around them
_FORTH: Final = re.compile(r"(?:\+(?:goose|migrate)|rambler) +up\b.*|migrate:up\b.*|up(?: migration\b.*|s)?")
_BACK: Final = re.compile(
    r"(?:\+(?:goose|migrate)|rambler) +down\b.*|migrate:down\b.*|down(?: migration\b.*|s)?|undo|rollback|create above / drop below"
)
_HEADING: Final = re.compile(r"^[ \t]*--([^\n]{1,200})$", re.MULTILINE)
# psql's lines that move no table; `\copy` moves rows only
_HARMLESS: Final = frozenset(
    (
        "set", "unset", "echo", "qecho", "warn", "restrict", "unrestrict", "timing", "encoding", "pset", "connect",
        "c", "x", "a", "t", "o", "copy", "conninfo", "errverbose", "password", "cd", "p", "r", "reset",
    )
)  # fmt: skip


class NotUnderstood(Exception):
    """SQL that cannot be read is refused, never guessed.

    line, column  where, from 1
    """

    def __init__(self, message: str, line: int, column: int = 1, hint: str = "") -> None:
        super().__init__(message)
        self.line, self.column, self.hint = line, column, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token.

    text   a word or name as PostgreSQL keeps it, a text without its quotes, a number or sign as written; a mark is the
           comment behind which a file goes back
    start  offset in the file, `end` the one after it
    """

    kind: Kind
    text: str
    start: int
    end: int
    line: int
    column: int

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """The tokens between two semicolons; `source` is the whole file."""

    words: tuple[Token, ...]
    source: str

    @property
    def line(self) -> int:
        return self.words[0].line

    def between(self, first: int, last: int) -> str:
        """The source from one word up to another, exclusively, on one line and without comments."""
        text = ""
        end = self.words[first].start if first < last else 0
        for word in self.words[first:last]:
            text += (" " if word.start > end else "") + " ".join(self.source[word.start : word.end].split())
            end = word.end
        return text

    def __str__(self) -> str:
        return self.between(0, len(self.words))


def statements(source: str, *, headings: bool = True) -> Iterator[SqlStatement]:
    """The statements of a file, in order; comments, psql's own lines and the rows of `COPY … FROM stdin` are skipped.

    The down part is skipped too: it is one statement of one `mark`.

    headings  comments may mark that part: true for files, not for a routine's body
    raises  NotUnderstood
    """
    reader = _Reader(source, headings)
    while True:
        words = reader.statement()
        if words:
            yield SqlStatement(tuple(words), source)
            if words[0].text == "copy" and _from_stdin(words):
                reader.pass_rows()
        elif reader.done:
            return


def _from_stdin(words: list[Token]) -> bool:
    texts = [word.text for word in words]
    return any(pair == ("from", "stdin") for pair in pairwise(texts))


class _Reader:
    """A place in the source, moving forward."""

    def __init__(self, source: str, headings: bool) -> None:
        self._headings = headings
        self.source, self.at = source, 1 if source.startswith("\ufeff") else 0
        self._line, self._line_start, self._counted = 1, 0, 0
        self._marked: Token | None = None  # a mark that ended a statement, returned after it

    @property
    def done(self) -> bool:
        return self.at >= len(self.source) and self._marked is None

    def statement(self) -> list[Token]:
        """The tokens up to the next semicolon outside brackets and bodies, or up to the end."""
        tokens: list[Token] = []
        depth = bodies = 0
        while (word := self._word(begins=not tokens, outside=not (depth or bodies))) is not None:
            if word.kind == "mark":
                if tokens:
                    self._marked = word
                    return tokens
                return [word]
            if word.kind == "sign" and word.text in "([":
                depth += 1
                if depth > _DEEPEST:
                    raise NotUnderstood(f"brackets nested deeper than {_DEEPEST}", word.line, word.column)
            elif word.kind == "sign" and word.text in ")]":
                depth = max(0, depth - 1)
            elif word.kind == "word" and (bodies or _opens_body(word, tokens)):
                bodies += _nesting(word, tokens)
            elif word.kind == "sign" and word.text == ";" and not depth and not bodies:
                return tokens
            tokens.append(word)
        if depth or bodies:
            raise NotUnderstood("the statement does not end: a bracket or body stays open", tokens[0].line)
        return tokens

    def pass_rows(self) -> None:
        """Skip the rows of a COPY and the `\\.` that ends them."""
        end = re.compile(r"^\\\.\r?$", re.MULTILINE).search(self.source, self.at)
        if end is None:
            raise self._wrong("the rows of COPY … FROM stdin do not end", "they end with a line that holds only \\.")
        self.at = end.end()

    def _word(self, *, begins: bool, outside: bool) -> Token | None:
        mark, self._marked = self._marked, None
        mark = mark or self._pass_blanks(begins=begins, outside=outside)
        if mark is not None:
            return mark
        if self.at >= len(self.source):
            return None
        kind, text, end = self._next()
        line, column = self._place()
        word = Token(kind=kind, text=text, start=self.at, end=end, line=line, column=column)
        self.at = end
        return word

    def _pass_blanks(self, *, begins: bool, outside: bool) -> Token | None:
        """returns  the mark of the down part if it is next; this reader is then behind that part"""
        while self.at < len(self.source):
            here = self.source[self.at]
            if outside and self._goes_back():
                return self._pass_back()
            if match := _SPACE.match(self.source, self.at) or _LINE_COMMENT.match(self.source, self.at):
                self.at = match.end()
            elif self.source.startswith("/*", self.at):
                self.at = self._comment_end()
            elif here == "\\":
                self._pass_psql(begins)
            else:
                return None
        return None

    def _goes_back(self) -> bool:
        """Whether a comment that marks the down part is next, alone on its line."""
        if not self._headings or not self.source.startswith("--", self.at):
            return False
        start = self.source.rfind("\n", 0, self.at) + 1
        match = _HEADING.match(self.source, start)
        return match is not None and match.start(1) == self.at + 2 and _BACK.fullmatch(_heading(match[1])) is not None

    def _pass_back(self) -> Token:
        """Skip the down part: up to the line that begins an up part again, or to the end."""
        line, column = self._place()
        start, newline = self.at, self.source.find("\n", self.at)
        end = newline if newline >= 0 else len(self.source)
        headings = _HEADING.finditer(self.source, end)
        self.at = next((h.start() for h in headings if _FORTH.fullmatch(_heading(h[1]))), len(self.source))
        return Token(kind="mark", text=self.source[start:end].strip(), start=start, end=end, line=line, column=column)

    def _comment_end(self) -> int:
        depth, at = 0, self.at
        for mark in re.compile(r"/\*|\*/").finditer(self.source, at):
            depth += 1 if mark[0] == "/*" else -1
            if not depth:
                return mark.end()
        raise self._wrong("a comment does not end")

    def _pass_psql(self, begins: bool) -> None:
        end = self.source.find("\n", self.at)
        line = self.source[self.at : end if end >= 0 else len(self.source)].strip()
        command = re.match(r"\\([a-z]*)", line)
        if not begins or command is None or command[1] not in _HARMLESS:
            shown = line.split()[0][:20] if line.split() else "\\"
            raise self._wrong(f"psql's {shown} is not followed here", "give the SQL that psql would run")
        self.at += len(self.source[self.at : end if end >= 0 else len(self.source)])

    def _next(self) -> tuple[Kind, str, int]:
        source, at = self.source, self.at
        if _UNICODE.match(source, at):
            raise self._wrong("a text or name with Unicode escapes", "write the characters themselves")
        if match := _ESCAPED.match(source, at):
            inside, end = self._text(match, _REST)
            return "text", _unescaped(inside), end
        if match := _NATIONAL.match(source, at) or _PLAIN.match(source, at):
            inside, end = self._text(match, _PLAIN)
            return "text", inside.replace("''", "'"), end
        if match := _BITS.match(source, at):
            return "bits", match[1], match.end()
        if match := _NAME.match(source, at):
            return "name", kept(match[1].replace('""', '"')), match.end()
        if source[at] in "'\"":
            raise self._wrong("a quote does not end")
        if match := _DOLLAR.match(source, at):
            end = source.find(match[0], match.end())
            if end < 0:
                raise self._wrong(f"the text that {match[0]} begins does not end")
            return "text", source[match.end() : end], end + len(match[0])
        if match := _WORD.match(source, at):
            return "word", kept(match[0].translate(_SMALL)), match.end()
        if match := _NUMBER.match(source, at):
            return "number", match[0], match.end()
        return "sign", *(("::", at + 2) if source.startswith("::", at) else (source[at], at + 1))

    def _text(self, match: re.Match[str], form: re.Pattern[str]) -> tuple[str, int]:
        """The inside of a text that may continue behind line breaks, and its end."""
        inside, end = match[1], match.end()
        while more := _MORE.match(self.source, end):
            rest = form.match(self.source, more.end())
            if rest is None:
                raise self._wrong("a quote does not end")
            inside, end = inside + rest[1], rest.end()
        return inside, end

    def _place(self) -> tuple[int, int]:
        new = self.source.count("\n", self._counted, self.at)
        if new:
            self._line += new
            self._line_start = self.source.rfind("\n", 0, self.at) + 1
        self._counted = self.at
        return self._line, self.at - self._line_start + 1

    def _wrong(self, message: str, hint: str = "") -> NotUnderstood:
        line, column = self._place()
        return NotUnderstood(message, line, column, hint)


def kept(name: str) -> str:
    """A name as PostgreSQL keeps it: as many whole characters as go into 63 bytes, in a database of UTF-8."""
    return name.encode()[:_LONGEST].decode(errors="ignore")


def _heading(comment: str) -> str:
    return comment.strip(" \t\r-=#@!/").lower()


def _opens_body(word: Token, before: list[Token]) -> bool:
    """`BEGIN ATOMIC` of a routine: the only place outside brackets where a semicolon does not end a statement."""
    routine = (
        bool(before) and before[0].text == "create" and any(w.text in ("function", "procedure") for w in before[:4])
    )
    return routine and word.text == "atomic" and before[-1].text == "begin"


def _nesting(word: Token, before: list[Token]) -> int:
    if word.text == "atomic" and before[-1].text == "begin":
        return 1
    return {"case": 1, "end": -1}.get(word.text, 0)


def _unescaped(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        what = match[1]
        if what[0] in "01234567":
            return chr(int(what, 8))
        if what[0] in "xuU" and len(what) > 1:
            return chr(int(what[1:], 16))
        return _LETTERS.get(what, what)

    return _ESCAPE.sub(char, text.replace("''", "'"))
