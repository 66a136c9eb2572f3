"""As much of Kubernetes' API as Spark asks, on loopback. A pod is a process of this machine, which
runs the entry point of the application image.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

Json = dict[str, Any]
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_OF_MANY = {"GET": "list", "DELETE": "deletecollection", "POST": "create"}
_TERM = re.compile(r"([\w./-]+)\s*(!=|==?|in)\s*(\(.*?\)|[^,]*)")
"""Of a selector of labels: a=b, a!=b, a in (b,c)."""


@dataclass
class Kubernetes:
    """The objects of a namespace."""

    folder: Path
    """Where pods write."""
    command: list[str]
    """The entry point of the image."""
    image_variables: dict[str, str]
    secrets: dict[str, dict[str, str]]
    port: int = 0
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)
    """By resource and name."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    asked: set[tuple[str, str]] = field(default_factory=set)
    """Verbs and resources of all requests."""

    def environment(self, container: Json, pod: str) -> dict[str, str]:
        """The variables of a container."""
        facts = {"metadata.name": pod, "metadata.namespace": "default", "status.podIP": "127.0.0.1"}
        found = dict(self.image_variables)
        for source in container.get("envFrom", ()):
            found |= self.secrets[source["secretRef"]["name"]]
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {})
            if secret := source.get("secretKeyRef"):
                value = self.secrets[secret["name"]][secret["key"]]
            elif reference := source.get("fieldRef"):
                value = facts[reference["fieldPath"]]
            else:
                value = variable.get("value", "")
            found[variable["name"]] = value
        return found

    def start(self, pod: str, container: Json) -> subprocess.Popen[bytes]:
        """Start the container of a pod."""
        folder = self.folder / pod
        folder.mkdir()
        own = {"VIZPUB_CACHE": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
        with (folder / "log").open("wb") as log:
            process = self.processes[pod] = subprocess.Popen(
                [*self.command, *container["args"]],
                cwd=folder,
                env=self.environment(container, pod) | own,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return process

    def create(self, resource: str, made: Json) -> Json:
        name, identity = made["metadata"]["name"], {"uid": uuid4().hex, "namespace": "default"}
        made["metadata"] |= identity
        self.objects[resource, name] = made
        if resource == "pods":
            self.start(name, made["spec"]["containers"][0])
        return self.show(resource, name)

    def show(self, resource: str, name: str) -> Json:
        """An object; a pod with its state."""
        shown = self.objects[resource, name]
        if resource == "pods":
            code = self.processes[name].poll()
            phase = "Running" if code is None else "Failed" if code else "Succeeded"
            shown["status"] = {"phase": phase, "podIP": "127.0.0.1"}
        return shown

    def remove(self, resource: str, name: str) -> None:
        self.objects.pop((resource, name), None)
        process = self.processes.get(name) if resource == "pods" else None
        if process and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def chosen(self, resource: str, selector: str) -> list[str]:
        """The names of the objects with these labels."""
        terms = [
            (label, re.findall(r"[\w.-]+", values), sign != "!=")
            for label, sign, values in _TERM.findall(selector)
        ]
        return [
            name
            for (of, name), one in [*self.objects.items()]
            if of == resource
            and all(
                (one["metadata"].get("labels", {}).get(label) in values) == is_wanted
                for label, values, is_wanted in terms
            )
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    at: Kubernetes

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        uri, at = urlsplit(self.path), self.at
        query = {name: values[0] for name, values in parse_qs(uri.query).items()}
        # /api/v1/namespaces/default/RESOURCE/NAME
        resource, name = (*uri.path.split("/")[5:7], "", "")[:2]
        verb = (_VERBS if name else _OF_MANY)[self.command]
        at.asked.add(("watch" if query.get("watch") == "true" else verb, resource))
        names = [name] if name else at.chosen(resource, query.get("labelSelector", ""))
        if query.get("watch") == "true" or (name and (resource, name) not in at.objects):
            return self._say(404, {"kind": "Status", "apiVersion": "v1", "code": 404})
        if verb == "create":
            return self._say(201, at.create(resource, json.loads(body)))
        found = [at.show(resource, one) for one in names]
        if self.command == "DELETE":
            for one in names:
                at.remove(resource, one)
        kind = {"pods": "PodList", "configmaps": "ConfigMapList"}.get(resource, "List")
        many = {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": found}
        return self._say(200, found[0] if name else many)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def _say(self, status: int, answer: Json) -> None:
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(at: Kubernetes) -> Iterator[str]:
    """The address of the API, for the length of the block; then its pods are killed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"at": at}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        for pod in at.processes:
            at.remove("pods", pod)
