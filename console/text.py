"""Text made safe to show and to store: no foreign control sequence reaches the terminal, no secret a log."""

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
_COMMANDS = ("::", "##[", "##vso[")  # CI runners execute log lines with these beginnings as commands
_MARGIN = 4096  # characters inspected beyond the kept ones, so that no secret is cut in half
_SHORTEST = 6  # minimum length of a secret: `true` is none, regardless of its key
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_hidden: set[str] = set()
_SECRET_KEY = re.compile(
    r"(?i)(passw|secret|token|credential|api.?key|access.?key|account.?key|private.?key|connection.?string)"
)
# patterns of secrets in foreign texts: a driver's error, a log line, a traceback. With blanks around its `=`
# it is SQL, and `token: string` is a column, unless the name leaves no doubt. Each repetition is bounded, or begins
# at one place only, or ends its pattern: the cost of a line of a megabyte stays linear
_WORDS = ("passw", "pwd", "secret", "token", "credential", "key", "auth")
_NAME = r"(?:passw(?:or)?d|pwd|secret|token|credential|(?:api|access|private|account)[_.-]?key)[\w.-]{0,60}"
_HEADER = r"passw(?:or)?d|secret[\w.-]{0,60}|authorization|(?:api|auth|access|security|private)-(?:key|token)"
_QUOTED = r"""(?:\\"[^"\n]*"?|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?)"""
_VALUE = rf"(?:{_QUOTED}|[^\s,;&)]+)"
# every match of the pattern contains one of the words, in lower case: most lines contain none, and cost little. A
# pattern is compiled by the first line that contains one
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
    """From now on, in this process, values of settings with secret-looking names are shown as `***` wherever they appear.

    settings  name and value: `spark.hadoop.fs.s3a.secret.key`
    """
    _hidden.update(value for name, value in settings if len(value) >= _SHORTEST and secret(name))


def secret(name: str) -> bool:
    """Whether a setting's name marks its value as secret: `password`, `s3.secret-access-key`."""
    return _SECRET_KEY.search(name) is not None


def redacted(text: str) -> str:
    """The text without secrets and everything that looks like one."""
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
    """The same for JSON data; in a query only secrets known to this process are masked."""
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
    """Print the traceback of a bug without secrets: in every thread, task and finaliser."""
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
    logging.lastResort = Redacting(sys.stderr)  # asyncio uses it to report the failure of a task that was never awaited
    logging.lastResort.setLevel(logging.WARNING)


def one_line(error: Exception, limit: int = 300) -> str:
    """The text of a library's error, which may have lines and colours."""
    return " ".join(_COLOUR.sub("", str(error)).split())[:limit]


def safe_text(outside: str, limit: int = 2000) -> str:
    """Show every character that could steer a terminal as its escape, `\\x1b` for ESC.

    outside  a name, log line or error text from a file, a region or a store
    limit    characters kept; a longer text ends in `…` (one cell of a megabyte freezes a table)
    returns  the same text with visible characters only; markup is up to the caller: pass it as `Content`
    """
    outside = redacted(outside[: limit + _MARGIN])
    cut = outside if len(outside) <= limit else outside[: limit - 1] + "…"
    if cut.lstrip().startswith(_COMMANDS):
        cut = "\\" + cut
    if cut.isprintable():  # none of `_STEERING` matches, so that most texts need no inspection of each character
        return cut
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _STEERING else char for char in cut
    )
