"""The site of the docs: Sphinx reads the pages where they lie, so that a code host shows the same.

`make docs` builds it into vizpub/site, strictly: a dead link or anchor is an error.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser

from vizpub.model.version import __version__

ROOT = Path(__file__).parent.parent
PLAYED = ROOT / "build/beside/docs/played.html"
"""A run exported as a page, which `make docs` makes first."""
EXECUTED = ROOT / "build"
"""Where `make docs` executes the notebooks, below the folders of the checkout."""

project = "vizpub"
version = release = __version__
html_title = f"vizpub {__version__}"
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
html_extra_path = ["../build/beside"] if PLAYED.exists() else []


def _link_played_run(_app: object, page: str, text: list[str]) -> None:
    if page == "docs/gallery" and PLAYED.exists():
        link = '<a href="played.html">A run that plays in this page</a>: the demo, as'
        text[0] += f"\n## A run\n\n{link} `vizpub export html` writes it.\n"


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
    app.connect("source-read", _link_played_run)
    app.connect("source-read", _show_outputs)
