"""Names and texts as ClickHouse takes every character of them."""


def quoted(name: str) -> str:
    """An identifier."""
    return "`" + _escaped(name, "`") + "`"


def qualified(name: str) -> str:
    """`database.table` with each part quoted."""
    return ".".join(quoted(part) for part in name.split(".", 1))


def literal(text: str) -> str:
    """A text."""
    return "'" + _escaped(text, "'") + "'"


def _escaped(text: str, quote: str) -> str:
    return text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
