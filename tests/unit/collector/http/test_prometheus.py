"""The files of `examples/monitoring`, against what a collector really prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.collecting import Served, collector_in, serving
from vizpub.collector.http.prometheus import page

MONITORING = Path(__file__).parents[4] / "examples" / "monitoring"
ALERTS = MONITORING / "vizpub-alerts.yml"
OUR_NAME = re.compile(r"\b(?:vizpub|gossipsub)_\w+")
COUNTED = re.compile(r"\b(?:rate|increase)\(((?:vizpub|gossipsub)_\w+)")
LABEL = re.compile(r"\{([^}]*)\}|\bby \(([^)]*)\)")


@pytest.fixture
def exposition(tmp_path: Path) -> dict[str, str]:
    """The kinds of the figures by name, of a collector that has all inputs, and a run."""
    with serving(collector_in(tmp_path, None)) as served:
        text = _page(served)
    kinds = (line.split(" ")[2:] for line in text.splitlines() if line.startswith("# TYPE"))
    return dict(kinds)  # type: ignore[arg-type]


def _page(served: Served) -> str:
    progress = served.web.progress
    row = dict.fromkeys(
        ("network_size", "links", "weak_components", "clustering_mean", "hit_ratio"), 1
    )
    row |= {"interval": 0, "publications": 1, "receptions": 3, "duplicates": 1}
    done = {"number": 1, "position": 9, "closed": 0, "seconds": 1.0, "late": 0}
    done["left"] = [1, 20, 300]
    control = {"sent": {"ihave": 2}, "received": {"ihave": 2, "graft": 1}}
    progress.note_commit({**done, "control": control, "rows": [row]})
    served.web.intake.closing.closed = 0
    partition = {"partition": 0, "lag": 1, "lost": 0}
    progress.topic = lambda: {"up": True, "topic": "reports", "partitions": [partition]}
    return page(served.web.intake, progress, [{"up": True, "seconds": 0.1}])


def expressions_of_alerts() -> dict[str, str]:
    rules = re.findall(r"^ +- alert: (\w+)\n +expr: (.+)$", ALERTS.read_text(), re.MULTILINE)
    assert len(rules) == ALERTS.read_text().count("alert:")
    return dict(rules)


def panels() -> list[dict[str, Any]]:
    dashboard: dict[str, Any] = json.loads((MONITORING / "vizpub-grafana.json").read_text())
    return list(dashboard["panels"])


def expressions_of_panels() -> dict[str, str]:
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels()
        for target in panel["targets"]
    }


@pytest.mark.parametrize("expressions", [expressions_of_alerts, expressions_of_panels])
def test_expressions_ask_for_figures_that_a_collector_prints(
    exposition: dict[str, str], expressions: Any
) -> None:
    for title, expression in expressions().items():
        names = OUR_NAME.findall(expression)
        assert names or expression.startswith("up"), title
        assert {*names} <= exposition.keys(), title
        counters = {name for name in names if exposition[name] == "counter"}
        assert counters == {*COUNTED.findall(expression)}, title
        for inside, by in LABEL.findall(expression):
            labels = {part.partition("=")[0].strip() for part in (inside or by).split(",")}
            assert labels <= {"run", "job", "topic", "partition", "message_type"}, title


def test_figures_of_a_collector_are_all_on_the_dashboard_or_in_an_alert(
    exposition: dict[str, str],
) -> None:
    both = [*expressions_of_alerts().values(), *expressions_of_panels().values()]
    asked = {name for expression in both for name in OUR_NAME.findall(expression)}
    rest = {"vizpub_posts_total", "vizpub_batches_total", "vizpub_queue_bytes"}
    assert exposition.keys() - asked == rest


def test_dashboard_has_a_place_for_each_panel() -> None:
    places = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & places, panel["title"]
        assert max(x for x, _ in cells) < 24
        places |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_alerts_are_explained_on_the_page() -> None:
    page_text = (MONITORING.parents[1] / "docs/operating.md").read_text()
    for alert in expressions_of_alerts():
        assert re.search(rf"^\|.*\b{alert}\b.*\|", page_text, re.MULTILINE), alert


def test_scrape_configuration_names_the_rules_and_what_alerts_ask_for() -> None:
    content = (MONITORING / "prometheus.yml").read_text()
    for text in (ALERTS.name, "job_name: vizpub\n", "credentials_file:", "labels: {run: "):
        assert text in content


def test_rules_are_those_of_prometheus() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: rules are checked where it is there")
    subprocess.run([promtool, "check", "rules", str(ALERTS)], check=True)
