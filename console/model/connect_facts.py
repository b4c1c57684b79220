"""What a Spark Connect server says of itself."""

from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectFacts:
    """A server, as a session of it sees it.

    version     of its Spark
    client      of the PySpark that asked
    delta       whether its sessions have Delta's extension
    databricks  its runtime's version; "" elsewhere
    features    table features that its Delta gives every new table, by the names of their properties
    """

    version: str
    client: str
    delta: bool
    databricks: str = ""
    features: tuple[str, ...] = ()
