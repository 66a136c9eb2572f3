"""A run in one HTML file that needs no server and no network (`vizpub export html`).

The file has the page's scripts and the answers in gzip and base64. A browser runs no script in it
but those whose hashes stand in its policy, and what a run brings along is data to it.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import quote

from vizpub.explorer.offline.bundling import bundle
from vizpub.explorer.offline.embedding import ExportPart, questions
from vizpub.model.errors import UseError
from vizpub.model.progress import Progress, silent
from vizpub.questions.names import NamedRun

MOST_BYTES = 50_000_000
"""Of a file: browsers take seconds to open larger ones, and mail servers refuse them."""
_PAGE = Path(__file__).parents[1] / "page"


def html_page(
    run: NamedRun, part: ExportPart, progress: Progress = silent, views: bytes | None = None
) -> str:
    """The file of a run, or of a part of it, with these saved views.

    Raises: UseError, also for a file of more than MOST_BYTES; UnknownName for a part.
    """
    data = _Data()
    library, licence = read_library()
    data.add("script deck.gl", library)
    page = bundle(_PAGE, "exported.js").encode()
    data.add("script page", page)
    if views is not None:
        data.add("views", views)
    asked = questions(run, part)
    for done, (key, answer) in enumerate(asked):
        progress("answers", done, len(asked))
        try:
            data.add(key, answer()[1])
        except UseError as error:
            data.index[key] = str(error)
        if data.size > MOST_BYTES:
            raise UseError(
                f"the file of '{run.facts.name}' would have more than {MOST_BYTES / 1e6:.0f} MB; "
                "choose a part of the run with --from, --to, --topic or --layers"
            )
    progress("answers", len(asked), len(asked))
    return _html(run.facts.name, data, (library, page), licence)


class _Data:
    """Contents one after the other, by keys."""

    def __init__(self) -> None:
        self.index: dict[str, tuple[int, int] | str] = {}
        """Where the text of each begins and ends; or why there is none."""
        self.size = 0
        self._parts: list[str] = []

    def add(self, key: str, content: bytes) -> None:
        text = compress(content)
        self.index[key] = (self.size, self.size + len(text))
        self.size += len(text)
        self._parts.append(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)


def compress(content: bytes) -> str:
    """The content in gzip and base64, the same each time."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()


def read_library() -> tuple[bytes, str]:
    """The script that draws, and its licence."""
    (script,) = (_PAGE / "vendor").glob("*.js")
    (licence,) = (_PAGE / "vendor").glob("*LICENSE.txt")
    return script.read_bytes(), licence.read_text("utf-8")


def _html(run: str, data: _Data, scripts: tuple[bytes, ...], licence: str) -> str:
    boot, style = ((_PAGE / name).read_text("utf-8") for name in ("boot.js", "style.css"))
    index = json.dumps({"run": run, **data.index}).encode()
    hashes = " ".join(policy_hash(script) for script in (boot.encode(), *scripts))
    # Elements have style attributes: their values are the page's own.
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src-elem {policy_hash(style.encode())}; "
        "style-src-attr 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    icon = quote((_PAGE / "icon.svg").read_text("utf-8"))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(run)} – vizpub</title>
<link rel="icon" href="data:image/svg+xml,{icon}">
<style>{style}</style>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<div id="page">Opening … (If this line stays, the file is not complete.)</div>
<script type="text/plain" id="licence">{escape(licence)}</script>
<script type="text/plain" id="index">{compress(index)}</script>
<script type="text/plain" id="data">{data.text}</script>
<script>{boot}</script>
</body>
</html>
"""


def policy_hash(content: bytes) -> str:
    """The source of a script or a style, for a content security policy."""
    return f"'sha256-{b64encode(sha256(content).digest()).decode()}'"
