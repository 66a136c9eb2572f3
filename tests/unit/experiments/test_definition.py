from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.own import examples
from tests.support.words import naming, unknown
from vizpub.experiments.definition import (
    Experiment,
    merge_tables,
    own_metrics_of,
    read_experiment,
    shipped_names,
)
from vizpub.experiments.results import ExperimentResults, check_metric
from vizpub.experiments.runs import ExperimentFolder, planned_runs
from vizpub.model.errors import InputError, UnknownName
from vizpub.simulators.engine.systems import SYSTEMS

TEXT = """
title = "T"
about = "A"
source = "S"
seeds = [3, 8]
metrics = ["links"]

[world]
peers = 10
intervals = 5

[[systems]]
name = "one"
system = "cyclon"
parameters = { view = 6, gossip = 3 }

[[systems]]
name = "two"
system = "cyclon"

[[settings]]
name = "calm"

[[settings]]
name = "rough"
x = 1
parameters = { loss = 0.5 }

[[published]]
kind = "order"
what = "W"
source = "S"
metric = "links"
order = ["one, calm", "two, calm / two, rough"]

[small]
seeds = [1]

[small.world]
peers = 4
"""


def written(folder: Path, *changes: tuple[str, str]) -> str:
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = folder / "own-1.5.toml"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.fixture
def own(tmp_path: Path) -> Experiment:
    return read_experiment(written(tmp_path))


class TestReading:
    def test_groups_are_all_pairs_of_systems_and_settings(self, own: Experiment) -> None:
        names = ["one, calm", "two, calm", "one, rough", "two, rough"]
        assert [group.name for group in own.groups] == names
        assert [group.slug for group in own.groups][2] == "one-rough"
        assert own.name == "own-1.5"

    def test_setting_may_be_of_some_systems(self, tmp_path: Path) -> None:
        change = "x = 1\n", 'x = 1\nsystems = ["two"]\n'
        groups = read_experiment(written(tmp_path, change)).groups
        assert [group.name for group in groups] == ["one, calm", "two, calm", "two, rough"]

    def test_small_scale_replaces_values_and_merges_tables(self, tmp_path: Path) -> None:
        small = read_experiment(written(tmp_path), "small").content
        assert (small.seeds, small.world) == ((1,), {"peers": 4, "intervals": 5})

    def test_seeds_beyond_the_written_ones_follow_the_largest(self, own: Experiment) -> None:
        assert own.seeds() == (3, 8)
        assert own.seeds(1) == (3,)
        assert own.seeds(4) == (3, 8, 9, 10)

    def test_plan_has_the_parameters_of_world_setting_and_system(self, own: Experiment) -> None:
        plan = own.plan(own.group("one, rough"), 8)
        described = plan.describe()
        assert (plan.seed, described["view"], described["loss"]) == (8, 6, 0.5)
        assert described["peers"] == 10

    def test_merged_tables_leave_the_original_unchanged(self) -> None:
        whole = {"a": {"b": 1, "c": [1]}, "d": 1}
        assert merge_tables(whole, {"a": {"c": []}}) == {"a": {"b": 1, "c": []}, "d": 1}
        assert whole == {"a": {"b": 1, "c": [1]}, "d": 1}


class TestErrors:
    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (('what = "W"\n', ""), "published 1: there is no `what`"),
            (('what = "W"', 'what = "W"\nwhy_not = 1'), "published 1: no `why_not`"),
            (("seeds = [3, 8]", 'seeds = ["x"]'), "seeds"),
            (("seeds = [3, 8]", "seeds = []"), "give at least one system"),
            (("seeds = [3, 8]", "seeds = [3, 8, 3]"), "a seed occurs twice"),
            (('name = "calm"', 'name = "TCP / IP"'), "would be a ratio of groups"),
            (('kind = "order"', 'kind = "guess"'), "published 1, kind: Invalid value 'guess'"),
            (('metric = "links"', 'metric = "lnks"'), "published 1: no metric 'lnks'; did you"),
            (('"one, calm", ', '"one, clam", '), "published 1: no group 'one, clam'; did you"),
            (('name = "two"', 'name = "One"'), "two groups have the same name"),
            (('name = "calm"', 'name = "calm"\nx = 1'), "two settings have the same x"),
            (("x = 1", 'x = 1\nsystems = ["three"]'), "setting rough: there is no system 'three'"),
            (("title = ", "title "), "is not TOML"),
        ],
    )
    def test_error_in_a_definition_names_file_and_place(
        self, tmp_path: Path, change: tuple[str, str], told: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            read_experiment(written(tmp_path, change))
        assert "own-1.5.toml" in str(caught.value)
        assert told in str(caught.value)

    @pytest.mark.parametrize("kind", ["means", "series", "axis"])
    def test_figure_of_too_many_groups_is_refused(self, tmp_path: Path, kind: str) -> None:
        systems = "".join(f'[[systems]]\nname = "s{n}"\nsystem = "cyclon"\n' for n in range(20))
        label = 'label = "x"\n' if kind == "axis" else ""
        figure = (
            f'[[figures]]\nkind = "{kind}"\nname = "f"\ncaption = "c"\nmetrics = ["links"]\n{label}'
        )
        more = f"{figure}{systems}[small]"
        with pytest.raises(InputError, match=naming("figures 1", 22 if kind == "axis" else 44)):
            read_experiment(written(tmp_path, ("[small]", more)))
        fewer = more.replace('metrics = ["links"]', 'metrics = ["links"]\ngroups = ["s3, calm"]')
        assert read_experiment(written(tmp_path, ("[small]", fewer))).content.figures

    def test_unknown_parameter_is_refused_with_its_group(self, tmp_path: Path) -> None:
        own = read_experiment(written(tmp_path, ("view = 6", "vew = 6")))
        with pytest.raises(InputError, match=naming("'own-1.5'", "one, calm", "'vew'")):
            own.plan(own.groups[0], 1)

    def test_window_that_ends_before_it_begins_is_refused(self, tmp_path: Path) -> None:
        text = written(tmp_path, ("[world]", "window = [0.9, 0.5]\n\n[world]"))
        with pytest.raises(InputError, match=naming("own-1.5.toml", "0.9 to 0.5")):
            read_experiment(text)

    def test_unknown_experiment_scale_or_file_is_refused(self) -> None:
        with pytest.raises(
            UnknownName, match=unknown("experiment", "disemination", "dissemination")
        ):
            read_experiment("disemination")
        with pytest.raises(
            UnknownName,
            match=unknown("experiment", "gossip-complex-netwoks", "gossip-complex-networks"),
        ):
            read_experiment("gossip-complex-netwoks")  # measured by code, without a file
        with pytest.raises(UnknownName, match=unknown("scale", "huge")):
            read_experiment("dissemination", "huge")
        with pytest.raises(InputError, match=naming("none.toml")):
            read_experiment("none.toml")

    def test_missing_data_files_are_named_with_their_source(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "there.gz").touch()
        data = [f'[[data]]\nfile = "{n}.gz"\nsource = "from {n}"\n' for n in ("a", "b", "there")]
        own = read_experiment(written(tmp_path, ("[world]", "\n".join([*data, "[world]"]))))
        monkeypatch.setenv("VIZPUB_DATA", str(tmp_path))
        with pytest.raises(InputError) as caught:
            own.check_data()
        assert [word in str(caught.value) for word in ("from a", "from b", "from there")] == [
            True,
            True,
            False,
        ]
        assert caught.value.exit_code == 2


class TestShipped:
    def test_shipped_experiments_are_these(self) -> None:
        names = ["broadcast-or-tree", "chapter-5", "chord-lookups", "chord-scribe"]
        names += ["convergence", "designed-and-grown", "dissemination", "dissemination-of-all"]
        names += ["dissemination-under-churn", "hyparview", "survey", "table-4.3"]
        assert shipped_names() == names

    @pytest.mark.parametrize("name", shipped_names())
    @pytest.mark.parametrize("scale", ["small", "full"])
    def test_experiment_is_readable_at_each_scale(self, name: str, scale: str) -> None:
        experiment = read_experiment(name, scale)
        figures = [figure.name for figure in experiment.content.figures]
        assert len({*figures}) == len(figures)
        assert experiment.content.published
        for metric in experiment.content.metrics:
            check_metric(metric)

    @pytest.mark.parametrize("name", shipped_names())
    def test_plans_of_an_experiment_have_known_parameters(self, name: str) -> None:
        experiment = read_experiment(name, "small")
        for group in experiment.groups:
            assert experiment.plan(group, 1).seed == 1

    def test_survey_has_every_system_that_brings_publications_to_subscribers(self) -> None:
        systems = {system.system for system in read_experiment("survey").content.systems}
        others = {"channels", "chord", "cyclon", "pastry"}
        assert systems >= SYSTEMS.keys() - others
        assert not systems & others

    def test_systems_of_the_dissemination_of_all_share_their_world(self) -> None:
        for scale in ("small", "full"):
            experiment = read_experiment("dissemination-of-all", scale)
            assert len(experiment.content.systems) == 7
            assert len(experiment.content.seeds) >= 5
            for setting in experiment.content.settings:
                worlds = [
                    replace(experiment.plan(group, 1).world, links="all")
                    for group in experiment.groups
                    if group.setting == setting
                ]
                assert worlds == [worlds[0]] * 7

    @pytest.mark.parametrize("name", ["dissemination", "dissemination-under-churn"])
    def test_dissemination_needs_no_data_at_small_scale(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("VIZPUB_DATA", raising=False)
        experiment = read_experiment(name, "small")
        experiment.check_data()
        for group in experiment.groups:
            experiment.plan(group, 1)

    def test_files_of_the_full_scale_are_declared_as_data(self) -> None:
        for name in shipped_names():
            content = read_experiment(name).content
            tables = [content.world, *(s.parameters for s in content.settings)]
            texts = " ".join(str(value) for table in tables for value in table.values())
            used = {
                word for word in texts.replace(",", " ").replace(":", " ").split() if ".gz" in word
            }
            assert used == {data.file for data in content.data}


class TestOwnMetrics:
    FIGURE = """own_metrics = ["own_metrics.py:core_number"]

[[figures]]
kind = "series"
name = "n"
caption = "C"
metrics = ["core_number"]

[world]"""

    def test_metrics_and_figures_can_name_own_metrics(self, tmp_path: Path) -> None:
        examples(tmp_path)
        changes = ("[world]", self.FIGURE), ('metric = "links"', 'metric = "core_number"')
        experiment = read_experiment(written(tmp_path, *changes))
        (own,) = planned_runs(experiment, ExperimentFolder(tmp_path), 1, ())[0].own_functions
        assert (own.metric.name, own.metric.level) == ("core_number", "peer")
        (described,) = ExperimentResults([], own_metrics_of(experiment.own_functions)).describe(
            ["core_number"]
        )
        assert described.over == "mean of peers, then of intervals"

    def test_metric_that_is_not_given_is_refused(self, tmp_path: Path) -> None:
        examples(tmp_path)
        with pytest.raises(InputError, match=naming("figures 1", unknown("metric", "core_number"))):
            read_experiment(written(tmp_path, ("[world]", self.FIGURE.partition("\n")[2])))
        with pytest.raises(InputError, match=naming("absent.py")):
            read_experiment(
                written(tmp_path, ("[world]", self.FIGURE.replace("own_metrics.py", "absent.py")))
            )
