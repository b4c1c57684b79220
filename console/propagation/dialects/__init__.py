"""The supported stores: each is one value in a module of this folder, found by its presence there.

Its client is `console/stores/<kind>.py`.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from console.propagation.dialects.dialect import Dialect


def _dialects() -> Iterator[Dialect]:
    for module in iter_modules(__path__):
        values = vars(import_module(f"{__name__}.{module.name}")).values()
        yield from (value for value in values if isinstance(value, Dialect))


DIALECTS: Final = {dialect.kind: dialect for dialect in sorted(_dialects(), key=lambda dialect: dialect.position)}
