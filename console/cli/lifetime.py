"""A length of time as an option's value: `90m`, `12h`, `2d`."""

import click

from console.model.sandbox import MOST_HOURS


class Lifetime(click.ParamType[float]):
    """`90m`, `12h`, `2d`, in hours."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        number, unit = text[:-1], {"m": 1 / 60, "h": 1.0, "d": 24.0}.get(text[-1:])
        if unit is None or not number.isdecimal() or not 0 < int(number) * unit <= MOST_HOURS:
            self.fail(f"{text!r:.40} is not a time up to 30d, as 12h or 2d", param, ctx)
        return int(number) * unit
