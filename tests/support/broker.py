"""A real broker of Kafka (KRaft, one node) from the locked jars, at this machine's loopback."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from vizpub.machine.jvm.artifacts import jars
from vizpub.machine.jvm.java import find_java
from vizpub.model.errors import ArtifactsMissing, JavaMissing

kafka = pytest.importorskip("confluent_kafka", reason="this environment is older than the lock")
admin = pytest.importorskip("confluent_kafka.admin")

USER, PASSWORD = "collector", "a password"
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_ANSWER_S = 60.0
_JVM = ("-Xms128m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now."""
    doors = [socket.socket() for _ in range(count)]
    for door in doors:
        door.bind(("127.0.0.1", 0))
    ports: list[int] = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


@dataclass
class Broker:
    """A broker in a folder. It can be stopped, killed, and started again at the same ports."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(4))
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def address_with_password(self) -> str:
        """Where it asks for USER and PASSWORD."""
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def address_with_tls(self) -> str:
        """Where it shows a certificate by `authority`."""
        return f"127.0.0.1:{self.ports[2]}"

    @property
    def authority(self) -> Path:
        """The certificate of the broker's own authority."""
        return self.folder / "authority.pem"

    def start(self) -> None:
        """Returns when it answers."""
        self._certify()
        self._write()
        if not (self.folder / "data").exists():
            settings = str(self.folder / "broker.properties")
            self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", settings).wait(60)
        self.process = self._java("kafka.Kafka", str(self.folder / "broker.properties"))
        end = time.monotonic() + _ANSWER_S
        while True:
            with suppress(kafka.KafkaException), self._admin as asked:
                asked.list_topics(timeout=1)
                return
            said = (self.folder / "said.txt").read_text("utf-8", "replace")
            assert self.process.poll() is None, said
            assert time.monotonic() < end, said

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Returns when the process is gone."""
        assert self.process
        self.process.send_signal(how)
        self.process.wait(60)

    def _certify(self) -> None:
        if self.authority.exists():
            return
        authority = trustme.CA()
        made = authority.issue_cert("127.0.0.1")
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        # The only form of a key that Kafka reads.
        shown = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        shown += b"".join(part.bytes() for part in made.cert_chain_pems)
        (self.folder / "broker.pem").write_bytes(shown)
        authority.cert_pem.write_to_path(self.authority)

    def _write(self) -> None:
        client, asking, secure, controller = self.ports
        login = f'{_LOGIN} username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{client},ASKING://127.0.0.1:{asking},"
            f"SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ASKING:SASL_PLAINTEXT,"
            "SECURE:SSL,CONTROLLER:PLAINTEXT",
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": self.folder / "broker.pem",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.asking.plain.sasl.jaas.config": login,
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "true",  # a collector must not make one, even so
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (self.folder / "broker.properties").write_text("".join(lines))

    def _java(self, main: str, *words: str) -> subprocess.Popen[bytes]:
        path = ":".join(map(str, jars("kafka")))
        command = [str(find_java().executable), *_JVM, "-cp", path, main, *words]
        with (self.folder / "said.txt").open("ab") as said:
            return subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=said)

    @property
    def _admin(self) -> Any:
        return admin.AdminClient({"bootstrap.servers": self.address, "log_level": "0"})

    def make_topic(self, name: str, partitions: int = 1) -> None:
        with self._admin as asked:
            _done(asked.create_topics([admin.NewTopic(name, partitions, 1)]))

    def add_partitions(self, name: str, count: int) -> None:
        with self._admin as asked:
            _done(asked.create_partitions([admin.NewPartitions(name, count)]))

    def remove_topic(self, name: str) -> None:
        with self._admin as asked:
            _done(asked.delete_topics([name]))

    def topics(self) -> set[str]:
        with self._admin as asked:
            return set(asked.list_topics(timeout=10).topics)

    def remove_before(self, name: str, partition: int, offset: int) -> None:
        """What retention does when its time has come."""
        with self._admin as asked:
            _done(asked.delete_records([kafka.TopicPartition(name, partition, offset)]))

    def send(self, name: str, messages: Iterable[tuple[int, bytes]], **settings: Any) -> None:
        """Messages, each to its partition. Returns when the broker has them."""
        told = {"bootstrap.servers": self.address, "acks": "all", "log_level": "0", **settings}
        producer = kafka.Producer(told)
        failed: list[object] = []
        for partition, content in messages:
            producer.produce(
                name,
                content,
                partition=partition,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(_ANSWER_S) == 0
        assert not failed


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(_ANSWER_S)


def broker_in(folder: Path) -> Broker:
    """Started; the test is skipped where Kafka's jars or a Java cannot be had."""
    made = Broker(folder)
    try:
        made.start()
    except (ArtifactsMissing, JavaMissing) as missing:
        pytest.skip(f"no Kafka: {missing}")
    return made
