"""The page in a notebook: a widget whose front end asks the kernel by the widget's messages.

So it also works where a browser cannot reach the kernel's machine. Needs the extra `notebook`.
"""

from __future__ import annotations

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import anywidget
import traitlets
from starlette.types import ASGIApp, Message

from vizpub.explorer.offline.bundling import bundle
from vizpub.explorer.offline.exported import policy_hash, read_library
from vizpub.explorer.server.web import PAGE, app

DOCUMENT = "page"
"""The path of the page itself; those of answers begin with `api/`."""
_HEADERS = ("content-type", "content-disposition")
"""What the page reads of an answer's."""
_THREAD = ThreadPoolExecutor(1)
"""Where loops run: the kernel's own thread has one that runs, and no thread runs two."""


class RunView(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
    """The page of `vizpub explore`, at a run of a workspace. It only reads."""

    _esm = (PAGE / "widget.js").read_text("utf-8")
    state = traitlets.Unicode(help="The address of what is shown: `#/run/monday/overlay?t=50`.")
    state.tag(sync=True)
    height = traitlets.Int(720, min=200, help="Pixels.").tag(sync=True)

    def __init__(self, workspace: Path, run: str, **traits: Any) -> None:
        super().__init__(**{"state": f"#/run/{quote(run, safe='')}/overlay", **traits})
        self._app = app(workspace)
        self.on_msg(self._answer)

    def _answer(self, _: RunView, question: Any, buffers: object) -> None:
        """Send the answer to `{"id": …, "path": …}`: the content after its id, status and headers.

        What fails unexpectedly is answered by 500, and the widget logs it.
        """
        fields = question if isinstance(question, dict) else {}
        status, content = 500, b""
        headers: dict[str, str] = {}
        try:
            if fields.get("path") == DOCUMENT:
                status, content = 200, page_document()
            else:
                request = _request(self._app, str(fields.get("path")))
                status, headers, content = _THREAD.submit(asyncio.run, request).result()
        finally:
            reply = {"id": fields.get("id"), "status": status, "headers": headers}
            self.send(reply, [content])


async def _request(app: ASGIApp, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, some headers and content of what the page's server answers to a path."""
    address, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": f"/{unquote(address)}",
        "root_path": "",
        "query_string": query.encode(errors="replace"),
        "headers": [(b"host", b"localhost")],
    }
    status, headers, content = 500, {}, bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            decoded = ((key.decode(), value.decode("latin-1")) for key, value in message["headers"])
            headers = {key: value for key, value in decoded if key in _HEADERS}
        else:
            content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, headers, bytes(content)


@cache
def page_document() -> bytes:
    """The page in one HTML document, in gzip; it starts when it gets an address and a port.

    It is for the `srcdoc` of a frame, whose links would lead to the notebook without the `base`.
    """
    library, _ = read_library()
    drawing, style = library.decode(), (PAGE / "style.css").read_text("utf-8")
    start = (
        "addEventListener('message', ({ data, ports: [port] }) => {\n"
        f"globalThis.notebook = {{ ...data, port }};\n{bundle(PAGE, 'notebook.js')}}}, "
        "{ once: true });"
    )
    policy = (
        f"default-src 'none'; script-src {policy_hash(library)} {policy_hash(start.encode())}; "
        "style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'"
    )
    document = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="{policy}">
<base href="about:srcdoc">
<meta name="color-scheme" content="light dark">
<title>vizpub</title>
<style>{style}</style>
</head>
<body>
<div id="page"></div>
<script>{drawing}</script>
<script>{start}</script>
</body>
</html>
"""
    return gzip.compress(document.encode(), mtime=0)
