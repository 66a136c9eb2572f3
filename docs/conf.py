"""The site of the docs: Sphinx reads the pages where they lie, so that a code host shows the same.

`make docs` builds it into vizpub/site, strictly: a dead link or anchor is an error.
"""

from pathlib import Path
from typing import Any

from vizpub.model.version import __version__

ROOT = Path(__file__).parent.parent
PLAYED = ROOT / "build/beside/docs/played.html"
"""A run exported as a page, which `make docs` makes first."""

project = "vizpub"
html_title = f"vizpub {__version__}"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "benchmarks/*.md", "simulators/README.md"]
exclude_patterns = [".*", "**/.*", "build", "tests", "vizpub", "vizpub-data", "demo"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # Pygments knows no parameters ($at) in Cypher
    "myst.header",  # each kind of query begins with a smaller heading
]
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_extra_path = ["../build/beside"] if PLAYED.exists() else []


def _link_played_run(_app: object, page: str, text: list[str]) -> None:
    if page == "docs/gallery" and PLAYED.exists():
        link = '<a href="played.html">A run that plays in this page</a>: the demo, as'
        text[0] += f"\n## A run\n\n{link} `vizpub export html` writes it.\n"


def setup(app: Any) -> None:
    """Show the exported run where there is one."""
    app.connect("source-read", _link_played_run)
