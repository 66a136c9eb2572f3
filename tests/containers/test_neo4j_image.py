"""The Neo4j image: set like the local server, keeps data and secrets, stops and is killed."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.containers.engine import NEO4J, SECRET, WORD, answering, logs, neo4j, started
from tests.integration.graph.conftest import Graph, random_history
from tests.integration.graph.test_kill import Killer, impatient
from tests.integration.graph.test_load import ledger, relationships
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.sessions import REPEAT
from vizpub.graphstore.server.settings import PROFILES, settings
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

pytestmark = pytest.mark.containers


def run_in(container: DockerContainer, *words: str) -> str:
    done = container.exec(list(words))
    assert done.exit_code == 0, done.output
    return done.output.decode()


def test_image_settings_equal_those_of_the_local_server(server: DockerContainer) -> None:
    wanted = settings(PROFILES["test"]) | {"db.lock.acquisition.timeout": "7s"}
    conf = run_in(server, "cat", "/var/lib/neo4j/conf/neo4j.conf").splitlines()
    found = dict(line.split("=", 1) for line in conf)
    assert {name: found[name] for name in wanted} == wanted
    assert len(found) == len(conf), "Neo4j does not start with a setting that is said twice"


def test_setting_from_the_environment_takes_effect(server: DockerContainer) -> None:
    with connect(answering(server, SECRET)) as driver:
        shown = driver.execute_query(
            "SHOW SETTINGS 'db.lock.acquisition.timeout' YIELD value", database_="neo4j"
        )
    assert shown.records[0]["value"] == "7s"


def test_server_process_runs_as_user_7474(server: DockerContainer) -> None:
    assert run_in(server, "id", "-u").strip() == "7474"
    assert run_in(server, "stat", "-c", "%u", "/proc/1").strip() == "7474"


def test_password_from_a_file_is_shown_nowhere(server: DockerContainer) -> None:
    attributes = server.get_wrapped_container().attrs
    assert "NEO4J_AUTH_FILE" in str(attributes)
    assert WORD not in json.dumps(attributes)
    assert WORD not in run_in(server, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert WORD not in run_in(server, "cat", "/proc/1/environ")
    assert WORD not in logs(server)


def test_health_check_passes_on_a_running_server(server: DockerContainer) -> None:
    run_in(server, "healthy")


def test_neo4j_admin_is_installed_in_the_image(server: DockerContainer) -> None:
    assert run_in(server, "neo4j-admin", "--version").startswith("5.26.")


@pytest.mark.long
def test_server_stops_cleanly_keeps_data_and_shares_its_volume(server: DockerContainer) -> None:
    with connect(answering(server, SECRET)) as driver:
        driver.execute_query("CREATE (:Kept {of: 'before'})", database_="neo4j")
    wrapped = server.get_wrapped_container()
    wrapped.stop()
    wrapped.reload()
    assert wrapped.attrs["State"]["ExitCode"] == 0
    assert "Stopped." in logs(server)
    assert "neo4j" in admin(server, "database", "info", "neo4j")
    wrapped.start()
    with connect(answering(server, SECRET)) as driver:
        found = driver.execute_query("MATCH (k:Kept) RETURN k.of AS of", database_="neo4j")
    assert [record["of"] for record in found.records] == ["before"]


def admin(server: DockerContainer, *words: str) -> str:
    """What the tool says in a container of its own, with the volume of a stopped server."""
    volume = ["--volumes-from", server.get_container_id()]
    command = ["docker", "run", "--rm", *volume, NEO4J, "neo4j-admin", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("auth", "told"),
    [
        ({"NEO4J_AUTH": "neo4j"}, "NEO4J_AUTH must be"),
        pytest.param(
            {"NEO4J_AUTH": "neo4j/short"}, "at least 8 characters", marks=pytest.mark.long
        ),
        pytest.param(
            {"NEO4J_AUTH_FILE": "/nowhere"},
            "/nowhere cannot be read by uid 7474",
            marks=pytest.mark.long,
        ),
    ],
    ids=str,
)
def test_server_with_a_wrong_password_setting_exits_with_reason(
    auth: dict[str, str], told: str
) -> None:
    with started(neo4j(**auth)) as container:
        assert container.wait() != 0
        assert told in logs(container)


@pytest.mark.long
def test_load_resumes_after_its_container_is_killed(server: DockerContainer) -> None:
    history = replace(random_history(71, name="killed", peers=60, intervals=30), batch=20)
    wrapped = server.get_wrapped_container()
    killer = Killer(wrapped.kill, "load links", after=0.05)
    with (
        impatient(answering(server, SECRET)) as driver,
        pytest.raises(Neo4jUnavailable, match=REPEAT),
    ):
        load_run(driver, "neo4j", history.facts, history.tables, killer)
    killer.timer.join()
    assert wrapped.wait()["StatusCode"] == 128 + signal.SIGKILL
    wrapped.start()
    with impatient(answering(server, SECRET)) as driver:
        graph = Graph(driver, "neo4j")
        found, entered = relationships(graph, "killed"), ledger(graph, "killed")
        assert {name: entered.get(name, 0) for name in found} == found
        assert 0 < found["links"] < len(history.rows["links"])
        load_run(driver, "neo4j", history.facts, history.tables)
        assert verify_run(driver, "neo4j", history.facts, history.tables) == []
        found = relationships(graph, "killed")
        graph.remove("killed")
    assert found["links"] == len(history.rows["links"])
    assert found["hops"] + found["arrived-from-unknown"] == len(history.rows["receptions"])
