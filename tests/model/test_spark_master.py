"""The master of a region's Spark, and the size that its settings name."""

import pytest

from console.model.region import Spark
from console.model.spark_master import configured_slots, spark_master

KNOWN = {
    "local": ("local", 1, ""),
    "local[4]": ("local", 4, ""),
    "local[7,3]": ("local", 7, ""),
    "local[*]": ("local", 0, ""),
    "local[*,2]": ("local", 0, ""),
    "spark://lake.example.net:7077": ("standalone", 0, "lake.example.net"),
    "spark://a:7077,b:7077": ("standalone", 0, "a"),
    "spark://[::1]:7077": ("standalone", 0, "[::1]"),
    "yarn": ("yarn", 0, ""),
    "k8s://https://10.0.0.1:6443": ("kubernetes", 0, ""),
}
UNKNOWN = (
    "", "local[0]", "local[]", "local[2", "localhost", "local-cluster[2,1,1024]", "spark://", "spark://host", "spark://host:7077/x",
    "mesos://host:5050", "yarn-client", "k8s://", "sc://host:15002", "spark://a:7077\n",
)  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_every_master_that_spark_has_is_known_by_its_kind(text: str) -> None:
    master = spark_master(text)
    assert (master.kind, master.cores, master.host, master.text) == (*KNOWN[text], text)
    assert master.is_local == text.startswith("local")


@pytest.mark.parametrize("text", UNKNOWN)
def test_another_text_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected local"):
        spark_master(text)


def test_only_a_standalone_master_on_loopback_has_all_its_workers_here() -> None:
    here = ("spark://127.0.0.1:7077", "spark://127.9.9.9:1", "spark://[::1]:7077", "spark://localhost:7077")
    assert all(spark_master(text).on_loopback for text in here)
    away = (
        "spark://10.0.0.1:7077",
        "spark://localhost.example.net:7077",
        "spark://[2001:db8::1]:7077",
        "yarn",
        "local[2]",
    )
    assert not any(spark_master(text).on_loopback for text in away)


def test_regions_in_a_bucket_have_a_local_spark_or_a_standalone_cluster_wherever_it_is() -> None:
    assert all(spark_master(text).reaches_buckets for text in ("local", "local[2]", "spark://10.0.0.1:7077"))
    assert not any(spark_master(text).reaches_buckets for text in ("yarn", "k8s://https://host:6443"))


@pytest.mark.parametrize(
    ("slots", "conf"),
    [
        (0, {}),
        (0, {"spark.executor.cores": "4"}),
        (12, {"spark.executor.instances": "3", "spark.executor.cores": "4"}),
        (3, {"spark.executor.instances": "3"}),
        (6, {"spark.executor.instances": "3", "spark.executor.cores": "4", "spark.task.cpus": "2"}),
        (10, {"spark.executor.instances": "3", "spark.executor.cores": "4", "spark.cores.max": "10"}),
        (8, {"spark.cores.max": "8"}),
        (4, {"spark.cores.max": "8", "spark.task.cpus": "2"}),
        (40, {"spark.dynamicAllocation.enabled": " True", "spark.dynamicAllocation.maxExecutors": "10", "spark.executor.cores": "4",
              "spark.executor.instances": "2"}),
        (0, {"spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4", "spark.executor.instances": "2"}),
        (0, {"spark.executor.instances": "many"}),
    ],
)  # fmt: skip
def test_the_size_that_settings_name_is_in_tasks_at_once(slots: int, conf: dict[str, str]) -> None:
    assert configured_slots(conf) == slots


def test_a_region_is_priced_by_the_cores_that_its_file_names() -> None:
    instances = (("spark.executor.instances", "3"), ("spark.executor.cores", "4"))
    assert [Spark(text).cores for text in ("local", "local[4]", "local[6,2]", "local[*]", "yarn")] == [1, 4, 6, 1, 1]
    assert Spark("yarn", conf=instances).cores == 12
    assert Spark("", "sc://host", instances).cores == 1
