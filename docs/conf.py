"""The site of the docs: Sphinx reads the pages where they lie, so that a code host shows the same.

`make docs` builds it into vizpub/site, strictly: a dead link or anchor is an error.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser

ROOT = Path(__file__).parent.parent
BESIDE = ROOT / "build/beside"
"""Files that `make docs` makes first, for the site as they are."""
PLAYED = "docs/played.html"
"""Of these, a run that is exported as a page."""
PLAYER = """
## A run

The demo, as `vizpub export html` writes it: one file, which needs no server. Press *Play*, choose a
topic, or click a peer. On a narrow screen it is a table.

<div class="player">
<iframe src="played.html" title="A run that plays" loading="lazy"></iframe>
</div>

<a href="played.html">The same on a page of its own</a> has more room.
"""
EXECUTED = ROOT / "build"
"""Where `make docs` executes the notebooks, below the folders of the checkout."""

project = "vizpub"
with (ROOT / "pyproject.toml").open("rb") as file:
    version = release = tomllib.load(file)["project"]["version"]
html_title = f"{project} {version}"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "benchmarks/**.md",
    "simulators/README.md",
    "examples/notebooks/*.ipynb",
]
exclude_patterns = [".*", "**/.*", "build", "tests", "vizpub", "vizpub-data", "demo"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # Pygments knows no parameters ($at) in Cypher
    "myst.header",  # each kind of query begins with a smaller heading
]
html_theme = "furo"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        *(f"sidebar/{part}.html" for part in ("brand", "search", "scroll-start")),
        "versions.html",
        *(f"sidebar/{part}.html" for part in ("navigation", "scroll-end")),
    ]
}
linkcheck_ignore = [r"https?://(127\.0\.0\.1|localhost|[^/]*\.?example)([:/.]|$)"]
html_show_copyright = False
html_extra_path = [str(BESIDE)] if BESIDE.exists() else []


def _show_played_run(app: Any, page: str, text: list[str]) -> None:
    beside = [Path(app.confdir) / folder for folder in app.config.html_extra_path]
    if page == "docs/gallery" and any((folder / PLAYED).exists() for folder in beside):
        text[0] += PLAYER


def _show_outputs(_app: object, page: str, text: list[str]) -> None:
    executed = EXECUTED / f"{page}.ipynb"
    if executed.exists():
        text[0] = executed.read_text("utf-8")


class NotebookParser(MystParser):
    """Reads a notebook as a page of Markdown, with the outputs that it has."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Read the cells, and offer the notebook itself below them."""
        parts = [part for cell in json.loads(inputstring)["cells"] for part in _parts(cell)]
        name = Path(document["source"]).name
        parts.append(f"{{download}}`The notebook <{name}>` of this page, without its outputs.")
        super().parse("\n\n".join(parts), document)


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield f"```python\n{text}\n```"
    for output in cell["outputs"]:
        shown = output.get("data", {"text/plain": output.get("text", "")})
        if "image/png" in shown:
            image = "".join(shown["image/png"]).replace("\n", "")
            yield f'<img alt="{cell["id"]}" src="data:image/png;base64,{image}">'
        elif "text/html" in shown:
            # A blank line would end the HTML in Markdown.
            table = re.sub(r"\n\s*\n", "\n", "".join(shown["text/html"]))
            yield f'<div style="overflow-x: auto">{table}</div>'
        else:
            yield f"```text\n{''.join(shown['text/plain'])}\n```"


def setup(app: Any) -> None:
    """Show the exported run and the outputs of notebooks where they were made."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", _show_played_run)
    app.connect("source-read", _show_outputs)
