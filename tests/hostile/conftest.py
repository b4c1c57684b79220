"""Hostile cases stand on the same project and regions as those of the command line."""

from tests.cli.conftest import deployed, world

__all__ = ["deployed", "world"]
