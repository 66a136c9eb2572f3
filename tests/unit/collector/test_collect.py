"""What the intake's process imports, and what its command refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("package", ["pyspark", "confluent_kafka"])
def test_intake_imports_no_spark_and_no_client_of_kafka(package: str) -> None:
    code = f"import collector.collect, sys; sys.exit('{package}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0"], "tokens could be read"),
        (["--host", "0.0.0.0", "--no-token"], "this machine only"),
        (["--key", "k.pem"], "belong together"),
        (["--topic", "reports"], "--kafka and --topic belong together"),
        (["--kafka", "127.0.0.1:9092"], "--kafka and --topic belong together"),
        (
            ["--kafka", "x:1", "--topic", "r", "--kafka-config", "none.properties"],
            "none.properties",
        ),
        (["--peers", "nowhere.txt"], "nowhere.txt"),
        (["--stop"], "nothing is collected"),
        (["--reserve", "999999999GB"], "are free"),
    ],
)
def test_collect_refuses_what_is_unsafe_or_senseless(
    tmp_path: Path, options: list[str], why: str
) -> None:
    command = ["--workspace", str(tmp_path), "collect", "lab", *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert why in " ".join(done.output.split())
