"""Write what docs/ publishes of `console schema`: types.md and migration.schema.json."""

import json
from pathlib import Path

from console.propagation.published import migration_schema, types_page

DOCS = Path(__file__).resolve().parent.parent / "docs"


def pages() -> dict[str, str]:
    """File name in docs/ → its text."""
    schema = json.dumps(migration_schema(), indent=2, ensure_ascii=False) + "\n"
    return {"types.md": types_page(), "migration.schema.json": schema}


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
