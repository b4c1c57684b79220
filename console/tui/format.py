"""Human-readable numbers: rows, bytes, durations, rates. Pure."""

KILO = 1000.0
MINUTE, HOUR, DAY = 60, 3600, 86400


def count(number: float) -> str:
    """`466,830`."""
    return f"{round(number):,}"


def short(number: float) -> str:
    """At most six cells: `980`, `46.7k`, `467k`, `1.53M`, `12.0G`."""
    units = ["", "k", "M", "G", "T"]
    while number >= 999.5 and len(units) > 1:
        number /= KILO
        units.pop(0)
    unit = units[0]
    if not unit:
        return f"{number:.0f}"
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{digits}f}{unit}"


def size(octets: float) -> str:
    """Decimal units, as on disks and bills: `118 MB`."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while octets >= 999.5 and len(units) > 1:
        octets /= KILO
        units.pop(0)
    unit = units[0]
    return f"{octets:.0f} {unit}" if unit == "B" or octets >= 9.95 else f"{octets:.1f} {unit}"


def span(seconds: float) -> str:
    """A duration, two units at most: `0.4 s`, `12 s`, `2 m 05 s`, `1 h 12 m`, `3 d 4 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m {whole % MINUTE:02} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02} m"
    hours = whole % DAY // HOUR
    return f"{whole // DAY} d {hours} h" if hours else f"{whole // DAY} d"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 day`, `14 days`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
