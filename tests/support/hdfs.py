"""A real HDFS from the locked jars, at this machine's loopback: a name node and a data node in the
process that Hadoop has for tests. Requests of this process can fail.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.object_store import Server
from vizpub.machine.jvm.artifacts import jars
from vizpub.machine.jvm.java import find_java
from vizpub.model.errors import ArtifactsMissing, JavaMissing

_T = TypeVar("_T")
_JVM = ("-Xms128m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_WAIT_S = 90
_BUSY = 'RPCError("org.apache.hadoop.ipc.RetriableException", "too many requests")'
_EXPIRED = 'RPCError("org.apache.hadoop.security.token.SecretManager$InvalidToken", "has expired")'


@dataclass
class Cluster(Server):
    port: int

    def top(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"

    def let_in(self, patch: pytest.MonkeyPatch) -> None:
        import hdfs_native

        client = hdfs_native.Client
        patch.setattr(hdfs_native, "Client", lambda *words: _Client(self, client(*words)))

    def request(self, request: str, call: Callable[[], _T]) -> _T:
        """Make a request, or let it fail; the protocol itself is not touched."""
        self.requests.append(request)
        fault = self.fault(request)
        if fault == "cut":
            raise ConnectionResetError(fault)
        if fault in ("503", "slow-down"):
            raise RuntimeError(_BUSY)
        if fault == "expired":
            raise RuntimeError(_EXPIRED)
        answer = call()
        if fault in ("lost", "half"):
            raise ConnectionResetError(fault)
        return answer


@dataclass
class _Client:
    """What is used of hdfs-native's client."""

    at: Cluster
    inner: Any

    def list_status(self, path: str, recursive: bool = False) -> list[Any]:
        return self.at.request(f"LIST {path}", lambda: [*self.inner.list_status(path, recursive)])

    def read(self, path: str) -> _File:
        return _File(self.at, path, self.at.request(f"OPEN {path}", lambda: self.inner.read(path)))

    def create(self, path: str, options: Any) -> _File:
        file = self.at.request(f"CREATE {path}", lambda: self.inner.create(path, options))
        return _File(self.at, path, file)

    def rename(self, path: str, to: str, overwrite: bool = False) -> None:
        self.at.request(f"RENAME {to}", lambda: self.inner.rename(path, to, overwrite))

    def delete(self, path: str, recursive: bool = False) -> None:
        self.at.request(f"DELETE {path}", lambda: self.inner.delete(path, recursive))


@dataclass(eq=False)
class _File(RawIOBase):
    at: Cluster
    path: str
    inner: Any

    def __del__(self) -> None:
        RawIOBase.close(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def read(self) -> bytes:  # type: ignore[override]
        return self.at.request(f"READ {self.path}", self.inner.read)

    def read_range(self, start: int, size: int) -> bytes:
        return self.at.request(f"READ {self.path}", lambda: self.inner.read_range(start, size))

    def write(self, part: bytes) -> None:  # type: ignore[override]
        self.at.request(f"WRITE {self.path}", lambda: self.inner.write(part))

    def hsync(self) -> None:
        self.at.request(f"SYNC {self.path}", self.inner.hsync)

    def close(self) -> None:
        self.at.request(f"CLOSE {self.path}", self.inner.close)


@pytest.fixture(scope="session")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("hdfs_native", reason="this environment is older than the lock")
    folder = tmp_path_factory.mktemp("hdfs")
    try:
        path = ":".join(map(str, jars("hdfs")))
        java = str(find_java().executable)
    except (ArtifactsMissing, JavaMissing) as missing:
        pytest.skip(f"no HDFS: {missing}")
    details, settings = folder / "details.json", {"hdfs.minidfs.basedir": folder / "dfs"}
    settings["dfs.replication"] = 1
    words = ["-datanodes", "1", "-format", "-writeDetails", str(details)]
    words += [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    command = [java, *_JVM, "-cp", path, "org.apache.hadoop.test.MiniDFSClusterManager", *words]
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
    try:
        yield Cluster(_port(process, details, folder / "said.txt"))
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], details: Path, said: Path) -> int:
    end = time.monotonic() + _WAIT_S
    while True:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return int(json.loads(details.read_text())["namenode_port"])
        assert process.poll() is None, said.read_text("utf-8", "replace")
        assert time.monotonic() < end, said.read_text("utf-8", "replace")
        time.sleep(0.1)
