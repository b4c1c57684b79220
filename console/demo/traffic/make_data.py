"""Makes the access log shipped with the demo: addresses pseudonymised, search terms of other sites removed.

    python -m console.demo.traffic.make_data apache_access_2015.ndjson.gz OUT.ndjson.gz

The hash key is random and never stored: with it, all addresses could be tried.
"""

import gzip
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

DOCUMENTATION = tuple(map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
DOCUMENTATION_6 = ipaddress.IPv6Network("2001:db8::/32")
OWN_HOSTS = ("semicomplete.com", "www.semicomplete.com")
FIELDS = ("timestamp", "ip", "method", "path", "protocol", "status", "bytes", "referrer", "user_agent")
_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")


def pseudonyms(addresses: Iterable[str], key: bytes) -> dict[str, str]:
    """A documentation address for each real one; distinct addresses stay distinct.

    The three IPv4 ranges have 762 hosts; an address that hashes to a taken one gets an IPv6 address.
    """
    hosts = [host for network in DOCUMENTATION for host in network.hosts()]
    pseudonym_of: dict[str, str] = {}
    taken: set[int] = set()
    for address in sorted(set(addresses)):
        number = int.from_bytes(hmac.digest(key, address.encode(), hashlib.sha256))
        slot = number % len(hosts)
        if slot not in taken:
            taken.add(slot)
            pseudonym_of[address] = str(hosts[slot])
        else:
            pseudonym_of[address] = str(DOCUMENTATION_6[number >> 160])
    return pseudonym_of


def strip_search(referrer: str | None, known: dict[str, str]) -> str | None:
    """The referrer; for other sites without the query string, since it may contain search terms."""
    if referrer is None:
        return None
    parts = urlsplit(_ADDRESS.sub(lambda match: known[match[0]], referrer))
    if parts.netloc in OWN_HOSTS or not parts.netloc:
        return parts.geturl()
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def anonymized(lines: Iterable[str], key: bytes) -> str:
    """NDJSON of the shipped file from that of the source file, in the same order."""
    events = [json.loads(line) for line in lines]
    quoted = (address for event in events for address in _ADDRESS.findall(event["referrer"] or ""))
    known = pseudonyms([*(event["ip"] for event in events), *quoted], key)
    for event in events:
        event["ip"] = known[event["ip"]]
        event["referrer"] = strip_search(event["referrer"], known)
    return "".join(json.dumps({name: e[name] for name in FIELDS}, separators=(",", ":")) + "\n" for e in events)


def main(source: str, target: str) -> None:
    text = anonymized(gzip.decompress(Path(source).read_bytes()).decode().splitlines(), secrets.token_bytes(32))
    Path(target).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
