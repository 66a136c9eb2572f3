"""Wheels that are made again from what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from tests.support.few import few
from vizpub.machine import kit
from vizpub.model.errors import UseError


@pytest.mark.parametrize("name", few(["tenacity", "neo4j", "msgspec", "pyarrow"], ["msgspec"]))
def test_wheel_made_again_installs_what_was_installed(name: str, tmp_path: Path) -> None:
    one = distribution(name)
    kit._write_wheel(one, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    options = ["--no-index", "--no-deps", "--no-compile", "--target", str(tmp_path / "there")]
    subprocess.run([*pip, *options, str(wheel)], check=True)
    for file in one.files or ():
        if ".." in file.parts or file.suffix == ".pyc" or file.name in kit._INSTALLED_BY:
            continue
        assert (tmp_path / "there" / file).read_bytes() == file.read_binary()


def test_wheel_has_files_of_any_date(tmp_path: Path) -> None:
    files = {"old.py": "", "RECORD": "", "METADATA": "Name: old\nVersion: 1\n"}
    files["WHEEL"] = "Tag: py3-none-any\n"
    info = tmp_path / "old-1.dist-info"
    info.mkdir()
    for name, text in files.items():
        (tmp_path if name == "old.py" else info).joinpath(name).write_text(text)
    (info / "RECORD").write_text("old.py,,\nold-1.dist-info/METADATA,,\n")
    os.utime(tmp_path / "old.py", (0, 0))
    kit._write_wheel(Distribution.at(info), tmp_path)
    with ZipFile(tmp_path / "old-1-py3-none-any.whl") as wheel:
        assert "old.py" in wheel.namelist()


def test_kit_is_made_of_wheels_and_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "some.jar"
    jar.write_bytes(b"jar")
    monkeypatch.setattr(kit, "distributions", lambda: [distribution("tenacity")])
    monkeypatch.setattr(kit, "jars", lambda _name, _progress: [jar])
    monkeypatch.setattr(kit, "graphframes_jars", lambda: [])
    assert kit.collect_kit(tmp_path / "kit") == ""
    (wheel,) = (tmp_path / "kit" / kit.WHEELS).iterdir()
    assert wheel.name.startswith(f"tenacity-{distribution('tenacity').version}-py3-none-any")
    assert (tmp_path / "kit" / kit.CACHE / "jars" / "some.jar").read_bytes() == b"jar"


def test_kit_of_a_checkout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [PurePosixPath("_editable_impl_vizpub.pth")]
    checkout = SimpleNamespace(name="vizpub", files=files, read_text=lambda _: "Tag: py3-none-any")
    monkeypatch.setattr(kit, "distributions", lambda: [checkout])
    with pytest.raises(UseError, match="checkout"):
        kit.collect_kit(tmp_path / "kit")
    assert not (tmp_path / "kit").exists()
