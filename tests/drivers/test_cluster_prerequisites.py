"""What `console doctor` finds of a region's cluster: a master that answers, YARN's folder, the operator's defaults."""

import socket
from pathlib import Path

import pytest

from console.drivers import prerequisites
from console.model.spark_master import spark_master


def found(master: str, defaults: str = "") -> list[tuple[str, bool | None]]:
    return [(each.name, each.ok) for each in prerequisites.cluster(spark_master(master), defaults)]


def test_each_master_is_asked_whether_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        here, gone = (f"127.0.0.1:{each.getsockname()[1]}" for each in (listening, closed))
        closed.close()
        assert found(f"spark://{here},{gone}") == [("spark master", True), ("spark master", None)]


def test_yarn_is_found_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    assert found("yarn") == [("yarn", False)]
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path / "nowhere"))
    assert found("yarn") == [("yarn", False)]
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    assert found("yarn") == [("yarn", True)]


def test_a_file_of_defaults_is_there_or_not(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    assert found("local[2]", str(file)) == [("spark defaults", False)]
    file.write_text("spark.executor.cores 4\n")
    assert found("local[2]", str(file)) == [("spark defaults", True)]
    assert found("local[2]") == []
