"""The site of the docs is built from pages whose links and anchors all lead somewhere."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

from vizpub.machine.jvm.lock import read_lock

ROOT = Path(__file__).parents[2]


def build(source: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Read the pages as `make docs` does, strictly, without writing them."""
    switches = ["-qEW", "--keep-going", "-b", "dummy", "-c", str(ROOT / "docs"), "-d", str(into)]
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *switches, str(source), str(into / "out")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_links_and_anchors_of_all_pages_lead_somewhere(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


DEAD = ("gone.md", "#nowhere", "other.md#nowhere", "../examples/gone.py", "pictures/gone.png")


def test_dead_links_and_pages_outside_the_navigation_fail_the_build(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    pages = {f"page-{place}": f"[a link]({link})" for place, link in enumerate(DEAD)}
    listed = "\n".join(["other", *pages])
    index = f"# Pages\n\n[good](other.md#other)\n\n```{{toctree}}\n{listed}\n```\n"
    (docs / "index.md").write_text(index)
    for name, text in {"other": "", "lost": "", **pages}.items():
        (docs / f"{name}.md").write_text(f"# {name.capitalize()}\n\n{text}\n")
    done = build(tmp_path, tmp_path / "read")
    assert done.returncode == 1
    found = re.findall(r"^\S*docs/(\S+)\.md[:\d]*: (.*)$", done.stderr, re.MULTILINE)
    told = dict(found)
    assert len(found) == len(told), done.stderr
    assert told.keys() == {"lost", *pages}
    for name, link in zip(pages, DEAD, strict=True):
        assert link.rpartition("#")[2] in told[name]


def test_published_sites_list_all_versions_and_lead_to_the_newest(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "docs/versions.py"))["publish"]
    site, folder = tmp_path / "site", tmp_path / "all"
    (site / "_static").mkdir(parents=True)
    (site / "_static/versions.js").write_text("const VERSIONS = [];\n")
    for version in ("0.9.0", "0.10.0", "0.11.0rc1", "0.9.0"):
        publish(site, folder, version)
    for version in ("0.9.0", "0.10.0", "0.11.0rc1"):
        listed = (folder / version / "_static/versions.js").read_text()
        assert listed == 'const VERSIONS = ["0.11.0rc1", "0.10.0", "0.9.0"];\n'
    assert "url=0.10.0/docs/index.html" in (folder / "index.html").read_text()


def test_versions_that_are_compared_are_those_that_are_measured_and_tested() -> None:
    page = (ROOT / "docs/compared.md").read_text("utf-8")
    compared = dict(re.findall(r"^\| \[(\w+)\].*\| ([\d.]+)[,:] .*\|$", page, re.MULTILINE))
    locked = (ROOT / "benchmarks/requirements.lock").read_text("utf-8")
    measured = dict(re.findall(r"^(raphtory|networkit)==([\d.]+)", locked, re.MULTILINE))
    assert compared == {
        "Gephi": read_lock()["gephi"].version,
        "Raphtory": measured["raphtory"],
        "NetworKit": measured["networkit"],
    }
