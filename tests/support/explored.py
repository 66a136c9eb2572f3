"""The explorer's server in a thread of its own, and questions to it as a browser sends them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import uvicorn

from vizpub.collector.http.listener import listen_at
from vizpub.explorer.server.web import app


@dataclass(frozen=True)
class Told:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)

    def arrays(self) -> dict[str, np.ndarray]:
        """Those of a packed answer, by name."""
        length = int.from_bytes(self.content[:4], "little")
        header = json.loads(self.content[4 : 4 + length])
        return {
            of["name"]: np.frombuffer(self.content, of["type"], of["length"], of["offset"])
            for of in header["arrays"]
        }


@dataclass(frozen=True)
class Explorer:
    """A server that runs."""

    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ask(
        self,
        path: str,
        method: str = "GET",
        query: Any = (),
        body: bytes | None = None,
        **headers: str,
    ) -> Told:
        """What it answers; redirects are not followed."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        asked = f"{path}?{urlencode(query, doseq=True)}" if query else path
        connection.request(method, asked, body, headers)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        told = Told(answer.status, found, answer.read())
        connection.close()
        return told


@contextmanager
def exploring(
    workspace: Path, token: str | None = None, *, commands: bool = False
) -> Iterator[Explorer]:
    """For the length of the block."""
    with listen_at("127.0.0.1", 0) as listening:
        config = uvicorn.Config(
            app(workspace, token, commands=commands), ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield Explorer(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
