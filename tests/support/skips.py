"""Which tests may be skipped where nothing may be missing (`REQUIRE_LISTED_SKIPS=1`, as in CI)."""

from __future__ import annotations

import os
import re
from typing import TypeVar

import pytest

LISTED = {
    r"no Gephi: |has no compiler": "Gephi's importer is run by a small Java program of ours",
    r"no Chromium: ": "a browser is not fetched for a test",
    r"no Firefox: ": "a browser is not fetched for a test",
    r"no (node|go|rustc|javac|Rscript): ":
        "what other programs read and other languages report is not fetched for a test",
    r"no promtool: ": "it is a part of Prometheus, which is not fetched for a test",
    r"no (Kafka|HDFS): ": "its jars are for tests only, and no mirror may have them",
    r"GraphFrames' jars are not here": "they are an extra that is fetched when asked for",
    r"the extra py2neo is not installed": "it is no part of the locked environment",
    r"VIZPUB_DATA |is not in VIZPUB_DATA|/.* is absent": "data under other licences is not shipped",
    r"is no local server of vizpub|only the local server's|the server of the tests speaks TLS":
        "what a local server alone has, where the tests speak to another one",
    r"takes root|by root only": "small disks are mounted by root",
    r"root (reads|may write) everywhere|root reads everything": "and for root no file is locked",
    r"no history of git here": "what is unpacked from an archive has none",
    r"no IPv6 here": "a container may have none",
    r"no /dev/full here|a path that is another in each process": "Linux has it, and macOS has not",
}  # fmt: skip
"""A pattern of reasons → why tests may be skipped for them."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def judged(report: Report) -> Report:
    """The report; a failure in place of an unlisted skip, where skips must be listed."""
    if os.environ.get("REQUIRE_LISTED_SKIPS") != "1" or not report.skipped:
        return report
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if not hasattr(report, "wasxfail") and not any(re.search(known, reason) for known in LISTED):
        report.outcome = "failed"
        report.longrepr = f"{reason}\ntests/support/skips.py lists no such reason"
    return report
