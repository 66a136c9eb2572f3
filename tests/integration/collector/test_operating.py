"""The commands of the page *Operating*, in their order, on a machine that is a folder.

Paths of the system are in the folder, users are the one of the test, and a small `systemctl` starts
what the installed unit says. The program, the collector, curl and TLS are the real ones.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import trustme

from tests.support.collected import last_of, until
from vizpub.collector.place import CollectionPlace

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "operating.md"
BLOCK = re.compile(r"^## (.+?)$|^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "sudo": 'if [ "$1" = -u ]; then shift 2; fi; exec "$@"',
    "useradd": '[ "$*" = "--system vizpub" ]',
    # Users and groups of the page are not of this machine.
    "install": """
        words=()
        while (($#)); do case $1 in -o | -g) shift 2 ;; *) words+=("$1"); shift ;; esac; done
        exec /usr/bin/install "${words[@]}"
    """,
    # The program is installed from the checkout, with the packages that are here.
    "python3": """
        [ "$1 $2" = "-m venv" ]
        mkdir -p "$3/bin"
        printf '%s\n' '#!/bin/sh' 'exec "$PYTHON" -m vizpub.cli "$@"' >"$3/bin/vizpub"
        printf '%s\n' '#!/bin/sh' '[ "$1" = install ] && test -e "$4" -o -e "$3"' >"$3/bin/pip"
        chmod +x "$3/bin/vizpub" "$3/bin/pip"
    """,
    "systemctl": """
        action=$1 unit=${*: -1}
        run=${unit#*@}
        file=$BOX/etc/systemd/system/vizpub-collect@.service
        case $action in
        enable | start)
            while IFS= read -r line; do eval "export $line"; done \
                < <(sed -n 's/^Environment=//p' "$file")
            if [ -e "$BOX/etc/vizpub/$run.env" ]; then
                COLLECT_OPTIONS=$(sed -n 's/^COLLECT_OPTIONS=//p' "$BOX/etc/vizpub/$run.env")
            fi
            command=$(sed -z 's/\\\\\\n//g' "$file" | sed -n 's/^ExecStart=//p' | sed "s/%i/$run/g")
            # shellcheck disable=SC2086
            eval "exec setsid $command" >"$BOX/$run.journal" 2>&1 &
            echo $! >"$BOX/$run.pid"
            until grep -q 'tokens' "$BOX/$run.journal"; do
                kill -0 "$(cat "$BOX/$run.pid")" || { cat "$BOX/$run.journal" >&2; exit 1; }
                sleep 0.2
            done
            ;;
        reload) kill -HUP "$(cat "$BOX/$run.pid")" ;;
        stop)
            kill -TERM "$(cat "$BOX/$run.pid")"
            while kill -0 "$(cat "$BOX/$run.pid")" 2>/dev/null; do sleep 0.2; done
            ;;
        *) exit 1 ;;
        esac
    """,
    "journalctl": 'cat "$BOX/${2#*@}.journal"',
}
"""Commands of the system, as far as the page calls them."""


@dataclass
class Machine:
    """The folder."""

    box: Path
    ports: dict[str, str]

    def rewrite(self, text: str) -> str:
        """The text with paths and ports of this machine."""
        text = re.sub(r"(?<![\w.])/(opt|etc|var)/", rf"{self.box}/\1/", text)
        for port, free in self.ports.items():
            text = text.replace(port, free)
        return text.replace("bolt://localhost:7687", "bolt://127.0.0.1:1")

    def run(self, block: str) -> str:
        """Run a block of the page, each of whose commands must succeed. Returns what it prints."""
        path = f"{self.box}/programs:{os.environ['PATH']}"
        environment = {"PATH": path, "BOX": str(self.box), "PYTHON": sys.executable}
        printed, errors = self.box / "printed", self.box / "errors"
        with printed.open("w") as out, errors.open("a") as err:  # a pipe ends with the last process
            code = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", self.rewrite(block)],
                cwd=self.box / "checkout",
                env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                check=False,
            ).returncode
        assert code == 0, f"{block}\n{errors.read_text()}"
        return printed.read_text()

    @property
    def place(self) -> CollectionPlace:
        return CollectionPlace(self.box / "var/lib/vizpub", "lab")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    sockets = [socket.create_server(("", 0)) for _ in range(2)]
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    made = Machine(tmp_path, dict(zip(("8443", "8444"), ports, strict=True)))
    for folder in ("etc/systemd/system", "var/lib", "var/backups", "opt", "programs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "var/lib/vizpub").mkdir(mode=0o755)
    has_systemd = shutil.which("systemd-analyze")
    for name, body in (PROGRAMS if has_systemd else PROGRAMS | {"systemd-analyze": "true"}).items():
        (tmp_path / "programs" / name).write_text(
            f"#!/usr/bin/env bash\nset -euo pipefail\n{body}\n"
        )
        (tmp_path / "programs" / name).chmod(0o755)
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "examples", checkout / "examples")
    shutil.copy(ROOT / "requirements.lock", checkout)
    unit = checkout / "examples/vizpub-collect@.service"
    unit.write_text(made.rewrite(unit.read_text()))
    (checkout / "neo4j-password").write_text("secret\n")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(checkout / "authority.pem")
    for folder in (checkout, checkout / "new"):
        folder.mkdir(exist_ok=True)
        pair = authority.issue_cert("127.0.0.1")
        pair.private_key_pem.write_to_path(folder / "key.pem")
        pair.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    before = {process.pid for process in psutil.process_iter()}
    yield made
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if process.pid not in before and str(tmp_path) in words:
            process.send_signal(signal.SIGKILL)


def served_certificate(machine: Machine) -> str:
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{machine.ports['8443']}"]
    shown = subprocess.run(command, input="", capture_output=True, text=True, check=False).stdout
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return begin + shown.partition(begin)[2].partition(end)[0] + end


def test_commands_of_the_page_do_what_it_says(machine: Machine) -> None:
    section, printed = "", dict[str, str]()
    for match in BLOCK.finditer(PAGE.read_text()):
        section = match[1] or section
        if not match[2]:
            continue
        if section == "Back-up and restore":
            until(lambda: last_of(machine.place) >= 1)
        printed[section] = printed.get(section, "") + machine.run(match[2])
    assert printed["Install"].startswith("vizpub ")
    tokens = str(machine.place.tokens)
    assert f"{machine.ports['8443']}/v1/runs/lab/reports" in printed["Start"]
    assert tokens in printed["Start"]
    assert (machine.box / "checkout/report.token").stat().st_mode & 0o777 == 0o600
    assert "vizpub_reports_total" in printed["Prometheus, alerts and Grafana"]
    assert "lab" in printed["Upgrade"]
    assert machine.ports["8444"] in printed["Several collectors"]
    restored = CollectionPlace(machine.box / "var/backups/vizpub/try", "lab")
    assert last_of(restored) >= 1
    assert restored.identity == machine.place.identity
    assert (restored.tokens / "report").read_text() == (machine.place.tokens / "report").read_text()
    new = (machine.box / "checkout/new/cert.pem").read_text().strip()
    until(lambda: served_certificate(machine) == new)
    seen = last_of(machine.place)
    until(lambda: last_of(machine.place) > seen)  # after upgrade and reload, peers still report
