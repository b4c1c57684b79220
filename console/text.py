"""Text made safe to show and to keep: no control sequence of another reaches the terminal, no secret a log."""

import re
import sys
import threading
import traceback
import unicodedata
from collections.abc import Iterable
from types import TracebackType
from typing import Any, TextIO

# controls, bidi and zero-width marks, lone surrogates, line and paragraph separators
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_COMMANDS = ("::", "##[", "##vso[")  # a CI's runner obeys a line of its log that begins so
_MARGIN = 4096  # characters looked at beyond what is kept, so that no secret is cut in half
_SHORTEST = 6  # characters of a secret that is looked for: `true` is none, whatever its key
_hidden: set[str] = set()
_SECRET_KEY = re.compile(
    r"(?i)(passw|secret|token|credential|api.?key|access.?key|account.?key|private.?key|connection.?string)"
)
# what looks like a secret in a text that somebody else wrote: a driver's error, a log line, a traceback. With blanks
# around its `=` it is SQL, and `token: string` is a column, unless the name leaves no doubt. A run is bounded, or begins
# at one place only, or ends its pattern: a line of a megabyte costs no more than its length
_WORDS = ("passw", "pwd", "secret", "token", "credential", "key", "auth")
_NAME = r"(?:passw(?:or)?d|pwd|secret|token|credential|(?:api|access|private|account)[_.-]?key)[\w.-]{0,60}"
_HEADER = r"passw(?:or)?d|secret[\w.-]{0,60}|authorization|(?:api|auth|access|security|private)-(?:key|token)"
_QUOTED = r"""(?:\\"[^"\n]*"?|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?)"""
_VALUE = rf"(?:{_QUOTED}|[^\s,;&)]+)"
# one of the words, in small letters, stands in whatever the pattern finds: most lines hold none, and cost little. A
# pattern is compiled by the first line that holds one
_SECRETS = (
    (_WORDS, rf"(?i)({_NAME}=){_VALUE}", r"\1***"),
    (_WORDS, rf"(?i)({_NAME}\\?['\"]\s{{0,9}}:\s{{0,9}}){_QUOTED}", r"\1***"),
    (_WORDS, rf"(?i)((?:{_HEADER})['\"]?:\s{{0,9}})(?:(?:bearer|basic|token)\s{{1,9}})?{_VALUE}", r"\1***"),
    (_WORDS, rf"(?i)((?:secret[_.-]access[_.-]key|aws_session_token)\s{{0,9}}=\s{{0,9}}){_VALUE}", r"\1***"),
    (("sig",), rf"(?i)((?:[?&]sig(?:nature)?|x-(?:amz|goog)-signature)=){_VALUE}", r"\1***"),
    (("bearer",), r"(?i)\b(bearer\s{1,9})(?=[a-z._~+/=-]{0,200}[0-9])[\w.~+/=-]{8,}", r"\1***"),
    (("://",), r"(\w://[^\s/:@]{0,200}:)[^\s/@]{1,500}@", r"\1***@"),
    (("://",), r"(https?://)[^\s/?#@]{1,500}@", r"\1***@"),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "***"),
    (("gh", "git", "dapi"), r"\b(?:(?:gh[oprsu]|github_pat)_[A-Za-z0-9_]{10,}|dapi[0-9a-f]{32})", "***"),
    (("ey",), r"(?<![A-Za-z0-9_-])ey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+", "***"),
    (("-----begin",), r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", "***"),
)  # fmt: skip
_ANY_WORD = tuple(dict.fromkeys(word for words, _, _ in _SECRETS for word in words))


def hide(settings: Iterable[tuple[str, str]]) -> None:
    """From now on, in this process, values of settings whose name says secret are shown as `***` wherever they turn up.

    settings  name and value: `spark.hadoop.fs.s3a.secret.key`
    """
    _hidden.update(value for name, value in settings if len(value) >= _SHORTEST and secret(name))


def secret(name: str) -> bool:
    """A setting's name says that its value is nobody else's: `password`, `s3.secret-access-key`."""
    return _SECRET_KEY.search(name) is not None


def redacted(text: str) -> str:
    """A text without what is a secret or looks like one."""
    text = _known(text)
    lowered = text.lower()
    for likely in _ANY_WORD:
        if likely in lowered:
            break
    else:
        return text
    for words, pattern, shown in _SECRETS:
        if any(word in lowered for word in words):
            text = re.sub(pattern, shown, text)
    return text


def redacted_data(value: Any) -> Any:
    """Data for JSON likewise; a query stays as it is but for secrets that this process knows of."""
    match value:
        case str():
            return redacted(value)
        case dict():
            return {
                key: _known(v) if key == "sql" and isinstance(v, str) else redacted_data(v) for key, v in value.items()
            }
        case list() | tuple():
            return [redacted_data(item) for item in value]
    return value


def _known(text: str) -> str:
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def guard_tracebacks() -> None:
    """Print the traceback of a bug without secrets: in whichever thread, task or finaliser it happens."""
    import logging

    def show(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        sys.stderr.write(redacted("".join(traceback.format_exception(kind, error, trace))))

    def ignored(args: "sys.UnraisableHookArgs") -> None:
        sys.stderr.write(redacted(f"{args.err_msg or 'ignored'}: {type(args.object).__name__}\n"))
        show(args.exc_type, args.exc_value, args.exc_traceback)

    class Redacting(logging.StreamHandler[TextIO]):
        def format(self, record: logging.LogRecord) -> str:
            return redacted(super().format(record))

    sys.excepthook = show
    sys.unraisablehook = ignored
    threading.excepthook = lambda args: show(args.exc_type, args.exc_value, args.exc_traceback)
    logging.lastResort = Redacting(sys.stderr)  # asyncio reports by it what a task failed with that nobody awaited
    logging.lastResort.setLevel(logging.WARNING)


def safe_text(outside: str, limit: int = 2000) -> str:
    """Show every character that could steer a terminal as its escape, `\\x1b` for ESC.

    outside  a name, log line or error text from a file, a region or a store
    limit    characters kept; a longer text ends in `…` (one cell of a megabyte freezes a table)
    returns  the same text with nothing in it but what is seen; markup is the caller's: pass it as `Content`
    """
    outside = redacted(outside[: limit + _MARGIN])
    cut = outside if len(outside) <= limit else outside[: limit - 1] + "…"
    if cut.lstrip().startswith(_COMMANDS):
        cut = "\\" + cut
    if cut.isprintable():  # none of `_STEERING` is: most texts cost no look at each character
        return cut
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _STEERING else char for char in cut
    )
