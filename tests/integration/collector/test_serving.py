"""A collector that others reach: TLS, and new tokens and certificates while it runs."""

from __future__ import annotations

import json
import os
import signal
import ssl
from pathlib import Path

import pytest
import trustme

from tests.support.collected import PATIENCE_S, QUICK, Collecting, running, until
from vizpub.collector.http.client import CollectorClient
from vizpub.model.errors import ServiceError, UseError
from vizpub.reports.client import Reporter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
REPORT = json.dumps({"format": "vizpub.report/1", "peer": "a", "interval": 0}).encode()


def certified(folder: Path) -> Path:
    """A certificate and its key in the folder, by a new authority, whose file is returned."""
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "key.pem").chmod(0o600)
    made.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    trusted = folder / f"{len(list(folder.iterdir()))}.ca"
    authority.cert_pem.write_to_path(trusted)
    return trusted


def posted(url: str, token: str, trusted: Path) -> int:
    context = ssl.create_default_context(cafile=str(trusted))
    with Reporter(url, token, context=context, pace=QUICK) as reporter:
        reporter.line(REPORT)
        reporter.flush(PATIENCE_S)
        return reporter.counts.sent


def test_tokens_and_certificates_change_while_it_runs(tmp_path: Path) -> None:
    first = certified(tmp_path)
    files = ("--certificate", str(tmp_path / "cert.pem"), "--key", str(tmp_path / "key.pem"))
    with running(Collecting(tmp_path, (*files, "--no-load"))) as case:

        def header(token: str, trusted: Path) -> object:
            return CollectorClient(case.url, token, str(trusted)).get()["header"]

        def listens() -> bool:
            return case.place.listener() is not None

        until(listens)
        report = case.place.tokens / "report"
        old = report.read_text().strip()
        assert posted(case.url, old, first) == 1
        with pytest.raises(UseError, match="401"):
            header("wrong", first)
        report.write_text("another\n")
        second = certified(tmp_path)
        assert header(old, first)  # not before it is told
        assert case.process
        os.kill(case.process.pid, signal.SIGHUP)

        def is_new() -> bool:
            try:
                return bool(header("another", second))
            except ServiceError:
                return False

        until(is_new)
        with pytest.raises(UseError, match="401"):
            header(old, second)
        with pytest.raises(ServiceError, match="certificate"):
            header("another", first)
        assert posted(case.url, "another", second) == 1
