"""The master of a region's Spark: where its tasks run."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Literal

from console.record import dataclass

_LOCAL = re.compile(r"local(?:\[(?:(?P<cores>[1-9][0-9]{0,4})|(?P<all>\*))(?:,[1-9][0-9]*)?\])?")
_STANDALONE = re.compile(
    r"spark://(?P<first>(?P<host>[^\s:/,\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})(?:,[^\s,]+:[0-9]{1,5})*"
)
_KUBERNETES = re.compile(r"k8s://\S+")

FORMS = "local[N], spark://HOST:PORT, yarn or k8s://URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMaster:
    """A master in Spark's syntax, understood.

    cores  of `local[N]`; 0 for all of the machine, and for a cluster
    host   of a standalone master, the first one where there are several; "" for the others
    """

    kind: Literal["local", "standalone", "yarn", "kubernetes"]
    text: str
    cores: int = 0
    host: str = ""

    @property
    def is_local(self) -> bool:
        return self.kind == "local"

    @property
    def reaches_buckets(self) -> bool:
        """Whether regions in a bucket may have it: its executors, wherever they are, were seen to read and write one."""
        return self.kind in ("local", "standalone")

    @property
    def on_loopback(self) -> bool:
        """Whether nothing but this machine can reach it, its workers included."""
        if self.kind != "standalone":
            return False
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"


def spark_master(text: str) -> SparkMaster:
    """raises  ValueError with the expected forms"""
    if local := _LOCAL.fullmatch(text):
        return SparkMaster(kind="local", text=text, cores=0 if local["all"] else int(local["cores"] or 1))
    if standalone := _STANDALONE.fullmatch(text):
        return SparkMaster(kind="standalone", text=text, host=standalone["host"])
    if text == "yarn":
        return SparkMaster(kind="yarn", text=text)
    if _KUBERNETES.fullmatch(text):
        return SparkMaster(kind="kubernetes", text=text)
    raise ValueError(f"`{text[:60]}` is not a master that console knows: expected {FORMS}")


def configured_slots(conf: Mapping[str, str]) -> int:
    """Tasks at once of the executors that the settings ask for; 0 where they do not say how many.

    With dynamic allocation those of all executors that may come: fewer tasks would never let it ask for more.
    """
    a_task = _number(conf, "spark.task.cpus") or 1
    most = _number(conf, "spark.cores.max")
    cores = _number(conf, "spark.executor.cores") or (0 if most else 1)
    count = _number(conf, "spark.dynamicAllocation.maxExecutors" if grows(conf) else "spark.executor.instances")
    asked = count * (cores // a_task)
    capped = most // a_task
    return min(asked, capped) if asked and capped else asked or capped


def grows(conf: Mapping[str, str]) -> bool:
    """Whether executors come and go by Spark's dynamic allocation."""
    return conf.get("spark.dynamicAllocation.enabled", "").strip().lower() == "true"


def _number(conf: Mapping[str, str], name: str) -> int:
    text = conf.get(name, "").strip()
    return int(text) if text.isdigit() else 0
