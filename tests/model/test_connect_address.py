"""Addresses of Spark Connect servers: what is understood, and what has no place in a file."""

import pytest

from console.model.connect_address import PORT, connect_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("sc://host", "host", PORT),
        ("sc://host/", "host", PORT),
        ("sc://spark.example.net:443/;use_ssl=true", "spark.example.net", 443),
        ("sc://127.0.0.1:15002", "127.0.0.1", 15002),
        ("sc://[::1]:7", "[::1]", 7),
        ("sc://w.cloud.example.net:443/;use_ssl=true;x-databricks-cluster-id=0102-abc", "w.cloud.example.net", 443),
    ],
)
def test_an_address_is_understood_as_sparks_clients_do(text: str, host: str, port: int) -> None:
    found = connect_address(text)
    assert (found.text, found.host, found.port) == (text, host, port)


@pytest.mark.parametrize(
    "text",
    ["", "host", "sc://", "sc:/host", "http://host", "spark://host:7077", "sc://host:0", "sc://host:70000", "sc://a,b",
     "sc://host/path", "sc://host/;=x", "sc://host/;use_ssl", "sc://ho st", "sc://host?use_ssl=true"],
)  # fmt: skip
def test_anything_else_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match="expected sc://HOST"):
        connect_address(text)


@pytest.mark.parametrize("option", ["token=dapi0123", "session_id=5", "x-api-key=abc", "password=abc"])
def test_a_secret_has_no_place_in_an_address_and_is_not_repeated(option: str) -> None:
    with pytest.raises(ValueError, match="SPARK_CONNECT_AUTHENTICATE_TOKEN") as error:
        connect_address(f"sc://host:443/;use_ssl=true;{option}")
    assert option.split("=")[1] not in str(error.value)
