"""Carry a data-pipeline schema change through many regions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"
__all__ = ["__version__", "open_release"]

if TYPE_CHECKING:
    from console.release import open_release


def __getattr__(name: str) -> Any:
    if name == "open_release":  # loaded when asked for: `console --help` must stay quick
        return import_module("console.release").open_release
    raise AttributeError(f"module 'console' has no attribute {name!r}")
