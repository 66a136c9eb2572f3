"""`vizpub docs`: opens the docs that are installed."""

from __future__ import annotations

from pathlib import Path

from vizpub.cli.settings import Settings
from vizpub.model.errors import UseError

PACKAGE = Path(__file__).parents[3]
"""The package, or the checkout with its folders."""
NO_DOCS = "this installation has no docs; in a checkout, build them with `make docs`"


def docs(settings: Settings) -> None:
    """Open the docs of this version in a web browser; no network is needed.

    The command prints the path of the first page and opens it. In a checkout in which `make docs`
    has not built the site, it only prints the path of the first page in Markdown.

    Examples:

    ```
    vizpub docs
    ```
    """
    for site in (PACKAGE / "site", PACKAGE / "vizpub/site"):
        if (page := site / "docs/index.html").exists():
            import webbrowser

            print(page)
            webbrowser.open(page.as_uri())
            return
    if not (page := PACKAGE / "docs/index.md").exists():
        raise UseError(NO_DOCS)
    print(page)
    settings.say("`make docs` builds a site from these pages, with search")
