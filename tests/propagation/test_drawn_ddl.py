"""Random scripts of DDL run in PostgreSQL; the observed migrations lead to the catalog's new state, or the scripts are refused."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.propagation.ddl.play import DdlDatabase, Verdict, judged
from tests.propagation.servers.postgres import Postgres

pytestmark = pytest.mark.stores
DRAWN = 120
MISREAD = (9372, 10297, 11257, 20432, 23100, 37318, 41964, 56235)  # read wrongly once, or judged so


@pytest.fixture(scope="module")
def database() -> Iterator[DdlDatabase]:
    postgres = Postgres()
    try:
        made = DdlDatabase(postgres.start())
        yield made
        made.close()
    finally:
        postgres.stop()


def test_what_is_observed_of_a_random_script_is_what_the_catalog_became_or_it_is_refused(database: DdlDatabase) -> None:
    """The seed of a script that is read wrongly is in the failure: `judged(database, seed)` plays it again."""
    results = {seed: judged(database, seed) for seed in (*range(DRAWN), *MISREAD)}
    wrong = {seed: (one.differences, one.script.body) for seed, one in results.items() if one.differences}
    assert wrong == {}
    verdicts = Counter(one.verdict for one in results.values())
    assert verdicts[Verdict.RIGHT] > DRAWN * 0.5, verdicts
