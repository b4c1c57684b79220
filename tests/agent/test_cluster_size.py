"""What is chosen by a cluster's size, the operator's own defaults, and hosts that share no disk. No Java."""

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console import paths, text
from console.agent import spark_process
from console.agent.cluster import shared_disk, size
from console.agent.cluster.defaults_file import read_defaults
from console.agent.settings import Settings, keep_settings, load_settings
from console.errors import RegionError
from console.model.spark_master import spark_master

GROWS = {"spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4"}


class Listed:
    """A Scala sequence of what Spark says of its executors."""

    def __init__(self, *each: tuple[str, str, bool, int]) -> None:
        self._all = [SimpleNamespace(id=lambda e=e: e[0], hostPort=lambda e=e: e[1], isActive=lambda e=e: e[2], maxTasks=lambda e=e: e[3]) for e in each]  # fmt: skip

    def size(self) -> int:
        return len(self._all)

    def apply(self, at: int) -> Any:
        return self._all[at]


class Context:
    """What a SparkContext says of its executors. scheduled: ids, of its scheduler; listed: by its UI; asked: for the list"""

    def __init__(self, *each: tuple[str, str, bool, int], scheduled: str | None = None) -> None:
        self.listed, self.asked = each, 0
        self.scheduled = ",".join(e[0] for e in each if e[0] != "driver" and e[2]) if scheduled is None else scheduled
        ids = SimpleNamespace(mkString=lambda _: self.scheduled)
        sc = SimpleNamespace(
            getExecutorIds=lambda: ids, statusStore=lambda: SimpleNamespace(executorList=lambda _: self._list())
        )
        self._jsc = SimpleNamespace(sc=lambda: sc)

    def _list(self) -> Listed:
        self.asked += 1
        return Listed(*self.listed)


def test_executors_are_listed_again_when_others_have_come_or_gone_and_until_both_lists_agree() -> None:
    one, two = ("0", "h:2", True, 4), ("1", "h:3", True, 4)
    asked, running = Context(one), size.RunningExecutors()
    first = running.of(asked)
    assert (running.of(asked) is first, asked.asked) == (True, 1)
    asked.scheduled = "0,1"  # its UI does not show it yet
    assert [len(running.of(asked)) for _ in range(2)] == [1, 1]
    asked.listed = (one, ("1", "", True, 4))  # it has no address yet, and takes no task
    assert [each.host for each in running.of(asked)] == ["h"]
    asked.listed = (one, two)
    assert [len(running.of(asked)) for _ in range(2)] == [2, 2]
    assert asked.asked == 5
    asked.scheduled, asked.listed = "", ()
    assert running.of(asked) == ()


def test_a_cluster_is_as_large_as_its_running_executors() -> None:
    driver, dead = ("driver", "h:1", True, 0), ("3", "h:4", False, 8)
    running = size.RunningExecutors().of(Context(driver, ("0", "h:2", True, 4), ("1", "[::1]:3", True, 4), dead))
    assert running == (size.Executor("0", "h", 4), size.Executor("1", "[::1]", 4))
    assert size.slots(running, {"spark.executor.instances": "9"}) == 8
    assert size.slots((), {"spark.executor.instances": "9"}) == 9
    assert size.slots((), {}) == size.UNKNOWN


def test_executors_that_may_still_come_count_where_they_come_by_themselves() -> None:
    """Fewer tasks than the executors take would never let Spark ask for another."""
    running = (size.Executor("0", "h", 4),)
    assert size.slots(running, {**GROWS, "spark.dynamicAllocation.maxExecutors": "5"}) == 20
    assert size.slots(running, GROWS) == 4
    assert size.slots((), GROWS) == size.UNKNOWN


def test_a_build_leaves_a_slot_to_live_whatever_the_size() -> None:
    assert [size.build_tasks(slots) for slots in (1, 2, 3, 200)] == [1, 1, 2, 199]
    assert size.build_settings(200) == {"spark.sql.files.maxPartitionNum": "199"}


def test_an_operator_who_names_a_number_has_it() -> None:
    assert size.session_settings(9, {}) == {
        "spark.sql.files.maxPartitionNum": "8",
        "spark.sql.shuffle.partitions": "8",
        "spark.databricks.delta.snapshotPartitions": "8",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    }
    assert size.session_settings(200, {})["spark.databricks.delta.snapshotPartitions"] == "50"
    assert "spark.sql.shuffle.partitions" not in size.session_settings(9, {"spark.sql.shuffle.partitions": "400"})


def conf(settings: Settings, **more: Any) -> dict[str, str]:
    return dict(spark_process.configuration(settings, spark_process.slots_of(settings.master), **more).getAll())


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "delta.jar").write_bytes(b"")
    monkeypatch.setattr(paths, "jars_dir", lambda: folder)
    return folder


def test_a_cluster_gets_no_settings_of_a_small_machine(jars: Path) -> None:
    local, cluster = conf(Settings(master="local[2]")), conf(Settings(master="spark://lake:7077"))
    assert (local["spark.master"], cluster["spark.master"]) == ("local[3]", "spark://lake:7077")
    small = {
        "spark.sql.shuffle.partitions", "spark.default.parallelism", "spark.databricks.delta.snapshotPartitions",
        "spark.buffer.pageSize", "spark.driver.host", "spark.driver.bindAddress", "spark.local.dir",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism",
    }  # fmt: skip
    assert small <= local.keys()
    assert not small & cluster.keys()
    assert cluster["spark.jars"] == str(jars / "delta.jar")
    assert {name: cluster[name] for name in spark_process._FIXED} == spark_process._FIXED
    assert (cluster["spark.scheduler.mode"], cluster["spark.ui.enabled"]) == ("FAIR", "false")


def test_the_driver_of_a_master_on_loopback_listens_there_alone(jars: Path) -> None:
    assert conf(Settings(master="spark://127.0.0.1:7077"))["spark.driver.bindAddress"] == "127.0.0.1"


def test_the_operators_defaults_lie_under_the_regions_settings_and_over_ours(jars: Path, tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(
        "spark.master yarn\nspark.driver.memory 9g\nspark.executor.cores 4\nspark.jars /theirs.jar\n"
        "spark.submit.deployMode cluster\nspark.sql.ansi.enabled false\nspark.app.name theirs\n"
    )
    own = {"spark.executor.cores": "5"}
    found = conf(Settings(region="eu", master="spark://lake:7077", conf=own, spark_defaults=str(file)))
    assert found["spark.driver.memory"] == "9g"
    assert found["spark.executor.cores"] == "5"
    assert found["spark.jars"] == f"{jars / 'delta.jar'},/theirs.jar"
    ours = ("spark.master", "spark.submit.deployMode", "spark.sql.ansi.enabled", "spark.app.name")
    assert [found[name] for name in ours] == ["spark://lake:7077", "client", "true", "console eu"]
    assert conf(Settings(region="eu", spark_defaults=str(file)))["spark.driver.memory"] == "9g"


def test_a_file_of_defaults_is_read_as_java_reads_properties(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(
        "# a comment\n! another\n\nspark.a   one two \nspark.b=2\r\nspark.c : 3\n  spark.d\tfour\nspark.e\n"
        "spark.f first, \\\n    second\nspark.g C\\:\\\\temp\\u00e9\nspark.h = a=b:c # no comment\nspark.b twice\n"
        "hadoop.x 1\nexport FOO=1\nspark.i \\\n# goes on\nspark\\ j 1\nspark.k trailing\\\\\n"
    )
    assert read_defaults(str(file)) == {
        "spark.a": "one two", "spark.b": "twice", "spark.c": "3", "spark.d": "four", "spark.e": "", "spark.f": "first, second",
        "spark.g": "C:\\tempé", "spark.h": "a=b:c # no comment", "spark.i": "# goes on", "spark.k": "trailing\\",
    }  # fmt: skip
    assert read_defaults("") == {}


def test_defaults_that_cannot_be_trusted_or_read_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    for path, why in ((file, "No such file"), (tmp_path, "not a file"), ("conf/x", "an absolute path")):
        with pytest.raises(RegionError, match=why) as refused:
            read_defaults(str(path))
        assert refused.value.code == "E_DEFAULTS"
    file.write_bytes(b"spark.a \xff\n")
    with pytest.raises(RegionError, match="not a text"):
        read_defaults(str(file))
    file.write_text("spark.a 1\n")
    file.chmod(0o666)
    with pytest.raises(RegionError, match="every user of its host can write it"):
        read_defaults(str(file))


def test_secrets_of_the_defaults_are_on_no_command_line_and_in_no_message(jars: Path, tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.authenticate.secret tr0ub4dor-and-3\nspark.authenticate true\n")
    settings = Settings(region="eu", master="spark://lake:7077", spark_defaults=str(file))
    full = spark_process.configuration(settings, 0)
    public = dict(spark_process.public_settings(full).getAll())
    assert dict(full.getAll())["spark.authenticate.secret"] == "tr0ub4dor-and-3"
    assert public["spark.authenticate"] == "true"
    assert "tr0ub4dor-and-3" not in str(public)
    assert "tr0ub4dor" not in text.redacted("it failed: tr0ub4dor-and-3")


def test_credentials_of_a_bucket_reach_executors_by_their_environment_and_no_command_line(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (jars / "s3").mkdir()
    (jars / "s3" / "connector.jar").write_bytes(b"")
    given = {
        "AWS_ACCESS_KEY_ID": "AKIATESTTESTTEST",
        "AWS_SECRET_ACCESS_KEY": "tr0ub4dor-and-3",
        "AWS_SESSION_TOKEN": "t0ken-of-hours",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    full = spark_process.configuration(Settings(master="spark://127.0.0.1:7077"), 0, in_bucket=True)
    found, public = dict(full.getAll()), dict(spark_process.public_settings(full).getAll())
    assert {name: found[f"spark.executorEnv.{name}"] for name in given} == given
    assert not [value for value in given.values() if value in str(public)]
    assert found["spark.jars"] == f"{jars / 'delta.jar'},{jars / 's3' / 'connector.jar'}"
    local = conf(Settings(master="local[2]"), in_bucket=True)
    assert not [name for name in local if name.startswith("spark.executorEnv.")], "its tasks are in the agent's own JVM"


def test_settings_keep_the_path_of_the_defaults_and_never_their_values(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.authenticate.secret tr0ub4dor-and-3\n")
    settings = load_settings(json.dumps({"region": "eu", "master": "yarn", "spark_defaults": str(file)}))
    (tmp_path / "_console").mkdir()
    keep_settings(tmp_path, settings)
    kept = (tmp_path / "_console" / "agent.json").read_text()
    assert load_settings(kept) == settings
    assert "tr0ub4dor" not in kept
    usual = Settings(region="eu")
    keep_settings(tmp_path, usual)
    assert "spark_defaults" not in (tmp_path / "_console" / "agent.json").read_text(), "an older agent refuses it"


@pytest.mark.parametrize("master", ["sc://host:15002", "mesos://host:5050", "local-cluster[2,1,1024]"])
def test_an_agent_with_an_unknown_master_does_not_start(master: str) -> None:
    with pytest.raises(RegionError, match="is not a master that console knows") as refused:
        load_settings(json.dumps({"region": "eu", "master": master}))
    assert refused.value.code == "E_MASTER"
    with pytest.raises(RegionError, match=r"backfill_spark.master: .* is not a master that console knows") as refused:
        load_settings(json.dumps({"region": "eu", "backfill_master": master}))
    assert refused.value.code == "E_MASTER"


def test_executors_of_other_hosts_never_write_to_a_disk_of_this_one() -> None:
    shared_disk.check_hosts(["127.0.0.1", "localhost", socket.gethostname()], "/lake")
    for host in ("192.0.2.1", "2001:db8::1", "[2001:db8::1]", "nowhere.invalid"):
        with pytest.raises(RegionError, match="is on this host's disk") as refused:
            shared_disk.check_hosts(["127.0.0.1", host], "/lake")
        assert refused.value.code == "E_CLUSTER"
    shared_disk.refuse_elsewhere(spark_master("spark://lake:7077"), "/lake")
    for master in ("yarn", "k8s://https://host:6443"):
        with pytest.raises(RegionError, match="its tasks run on other hosts"):
            shared_disk.refuse_elsewhere(spark_master(master), "/lake")
