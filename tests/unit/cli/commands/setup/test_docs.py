"""`vizpub docs` leads to the site, or to the pages."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vizpub.cli.commands.setup import docs
from vizpub.cli.main import app


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The addresses that a browser opens; the package lies in an empty folder."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    monkeypatch.setattr(docs, "PACKAGE", tmp_path)
    return addresses


@pytest.mark.parametrize("site", ["site", "vizpub/site"])
def test_docs_open_where_their_site_is_built(site: str, opened: list[str], tmp_path: Path) -> None:
    (page := tmp_path / site / "docs/index.html").parent.mkdir(parents=True)
    page.touch()
    done = CliRunner().invoke(app, ["docs"])
    assert (done.exit_code, done.stdout) == (0, f"{page}\n")
    assert opened == [page.as_uri()]


def test_pages_are_named_where_no_site_is_built(opened: list[str], tmp_path: Path) -> None:
    (page := tmp_path / "docs/index.md").parent.mkdir()
    page.touch()
    done = CliRunner().invoke(app, ["docs"])
    assert (done.exit_code, done.stdout, opened) == (0, f"{page}\n", [])
    assert "make docs" in done.stderr


@pytest.mark.usefixtures("opened")
def test_installation_without_docs_says_so() -> None:
    done = CliRunner().invoke(app, ["docs"])
    assert done.exit_code == 2
    assert docs.NO_DOCS in " ".join(done.stderr.split())
