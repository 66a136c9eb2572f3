"""The options of a topic; reading one is tested with a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.words import naming
from vizpub.collector.inputs.kafka_topic import Topic, TopicFailed, TopicReader, read_config
from vizpub.model.errors import UseError


def test_properties_are_read_as_kcat_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# how to get there\n\nsecurity.protocol = SASL_SSL\nsasl.username=a=b\nclient.id=\n"
    )
    assert read_config(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "a=b",
        "client.id": "",
    }


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.pem",
        "ssl.key.password",
        "ssl.keystore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.config",
    ],
)
def test_properties_with_a_secret_are_for_their_owner_only(tmp_path: Path, name: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"{name}=x\n")
    file.chmod(0o644)
    with pytest.raises(UseError, match="chmod 600"):
        read_config(file)
    file.chmod(0o600)
    assert read_config(file) == {name: "x"}


@pytest.mark.parametrize(
    "name",
    [
        "ssl.key.location",
        "ssl.keystore.location",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.assertion.private.key.file",
    ],
)
def test_file_with_a_secret_that_a_property_names_is_for_its_owner_only(
    tmp_path: Path, name: str
) -> None:
    file, secret = tmp_path / "client.properties", tmp_path / "secret"
    file.write_text(f"{name}={secret}\n")
    secret.write_bytes(b"\xff")
    secret.chmod(0o644)
    with pytest.raises(UseError, match=naming(f"chmod 600 {secret}")):
        read_config(file)
    secret.chmod(0o600)
    assert read_config(file) == {name: str(secret)}


def test_properties_that_others_can_write_are_refused(tmp_path: Path) -> None:
    """They say where tokens are fetched, and which command gets a ticket."""
    file = tmp_path / "client.properties"
    file.write_text("sasl.kerberos.kinit.cmd=true\n")
    for mode in (0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(UseError, match=naming(f"chmod go-w {file}")):
            read_config(file)


@pytest.mark.parametrize("text", ["a line", "= value"])
def test_line_without_name_and_value_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"client.id=x\n{text}\n")
    with pytest.raises(UseError, match=naming(file, "line 2", "NAME=VALUE")):
        read_config(file)


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="No such file"):
        read_config(tmp_path / "none")


@pytest.mark.parametrize(
    ("told", "from_end"), [({}, False), ({"auto.offset.reset": "latest"}, True)]
)
def test_topic_is_read_from_its_beginning_unless_told(told: dict[str, str], from_end: bool) -> None:
    assert Topic("127.0.0.1:9092", "reports", told).from_end == from_end


def test_unknown_beginning_is_refused() -> None:
    with pytest.raises(UseError, match=naming("earliest", "latest")):
        Topic("127.0.0.1:9092", "reports", {"auto.offset.reset": "none"})


@pytest.mark.parametrize(
    "told",
    [
        {"sasl.magic": "x"},
        {"security.protocol": "magic"},
        {"ssl.ca.location": "/nowhere/ca.pem", "security.protocol": "ssl"},
    ],
    ids=["unknown property", "unknown value", "no such file"],
)
def test_property_that_the_client_does_not_take_is_named(told: dict[str, str]) -> None:
    pytest.importorskip("confluent_kafka", reason="this environment is older than the lock")
    with pytest.raises(UseError, match=next(iter(told)).partition(".")[0]):
        TopicReader(Topic("127.0.0.1:9092", "reports", told), "lab")


def test_reason_is_told_though_the_client_ends_with_brokers_are_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which of the two the client says last is a matter of chance."""
    kafka = pytest.importorskip("confluent_kafka", reason="this environment is older than the lock")
    client = pytest.importorskip("confluent_kafka.admin").AdminClient
    begin, poll = client.__init__, client.poll

    def begun(self: Any, config: dict[str, Any]) -> None:
        self.tell = config["error_cb"]
        begin(self, config)

    def polled(self: Any, timeout: float) -> None:
        poll(self, timeout)
        self.tell(kafka.KafkaError(kafka.KafkaError._ALL_BROKERS_DOWN))

    monkeypatch.setattr(client, "__init__", begun)
    monkeypatch.setattr(client, "poll", polled)
    monkeypatch.setattr("vizpub.collector.inputs.kafka_topic._ANSWER_S", 1.0)
    reader = TopicReader(Topic("127.0.0.1:1", "reports"), "lab")
    try:
        with pytest.raises(TopicFailed, match="Connection refused"):
            reader.look()
    finally:
        reader.close()
