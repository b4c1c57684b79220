"""What a lease needs of a store: a write that is refused where the object exists, and reads that see it from then on."""

from typing import Protocol

from console.agent.errors import ObjectExists, StoreUnreachable

TRIES = 5


class Objects(Protocol):
    """The objects below one address, by keys that are relative to it.

    Every method raises StoreUnreachable if no usable answer came in time. A write may have been carried out all the same.
    """

    @property
    def address(self) -> str:
        """URI or path of the folder, as deltalake opens the tables in it."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> None:
        """raises  ObjectExists: perhaps this very put made it, in an earlier try whose answer was lost"""
        ...

    def put(self, key: str, data: bytes) -> None: ...

    def read(self, key: str) -> bytes | None:
        """None if there is no such object."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names of the objects directly in a folder, in order."""
        ...


def claimed(objects: Objects, key: str, data: bytes) -> bool:
    """Make an object, or find it made; whether it holds `data`.

    Neither a refusal nor a lost answer is believed: the object decides. So a put that was carried out without an answer
    counts as won, and one that was refused although nothing is there (S3's 409) is repeated. Repeating is safe: of an
    earlier try that is still on its way and the next one, the store lets one pass.

    data    no other process writes the same
    raises  StoreUnreachable if the outcome is unknown
    """
    for _ in range(TRIES):
        try:
            objects.put_if_absent(key, data)
            return True
        except (ObjectExists, StoreUnreachable):
            if (there := objects.read(key)) is not None:
                return there == data
    raise StoreUnreachable(f"{objects.address}/{key}: {TRIES} puts were refused although nothing is there")
