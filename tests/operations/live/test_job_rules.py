from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_env.workload.tables.applications import builtin_applications
from gpusched_operations.live.comment import JobSpec, seconds_of_due, spec_of_comment
from gpusched_operations.live.job_rules import UNIFORM, JobRules
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode

RESNET = "resnet50-imagenet-bs64"
HOUR = 3600.0
JOB = LiveJob("7", "train", "ann", "lab", "gpu", gpus=2, gpu_type="v100", submit_s=1000.0)
CLUSTER = LiveCluster("slurm", 0.0, (LiveNode("v1", "v100", 4), LiveNode("a1", "a100", 8)), ())
OWN = {
    "applications": {
        "mine": {"seconds_per_epoch": {"V100": [100.0, 60.0], "A100": {"4": 20.0, "2*8": 5.0}}, "max_epochs": 10}
    }
}


def described(comment: str = "", rules: dict[str, Any] | None = None, **fields: Any) -> Any:
    if "types=" in comment:
        fields.setdefault("gpu_type", None)
    job = replace(JOB, comment=comment, **fields)
    return JobRules.of(rules or {}).on(CLUSTER).describe(job)


def test_all_fields_of_a_comment() -> None:
    found = described(
        f"seen by ann gpusched app={RESNET} epochs=90 due=2026-11-27T08:00+00:00 weight=0.002 gpus=1,2,4 "
        "types=v100,a100 checkpoint=yes restart=60"
    )
    assert found.opted_in
    assert found.application == RESNET
    assert found.max_epochs == 90.0
    assert found.due_s == datetime(2026, 11, 27, 8, tzinfo=UTC).timestamp()
    assert found.weight_eur_per_s == 0.002
    assert found.restart_s == 60.0
    assert found.configurations == ("V100x1", "V100x2", "V100x4", "A100x1", "A100x2", "A100x4")
    assert found.checkpoints
    assert found.resizes
    assert found.defaults == ()


def test_a_job_that_asks_for_a_type_gets_no_other_since_slurm_cannot_change_it() -> None:
    comment = f"gpusched app={RESNET} gpus=1,2 types=v100,a100"
    assert described(comment, gpu_type="a100").configurations == ("A100x1", "A100x2")
    assert described(comment, gpu_type="a100|v100").configurations == ("V100x1", "V100x2", "A100x1", "A100x2")
    assert described(f"gpusched app={RESNET} gpus=1 types=any", gpu_type="v100").configurations == ("V100x1",)
    with pytest.raises(InputError, match="submit it without a type"):
        described(f"gpusched app={RESNET} gpus=1 types=a100", gpu_type="v100")


def test_without_a_comment_all_is_a_default_that_is_told() -> None:
    found = described()
    assert not found.opted_in
    assert found.configurations == ("V100x2",)
    assert not found.checkpoints
    assert not found.resizes
    assert found.restart_s is None
    assert [each.partition(":")[0] for each in found.defaults] == [
        "application",
        "most epochs",
        "due date",
        "checkpoints",
        "weight",
    ]


def test_a_time_limit_is_the_longest_time_where_the_job_asked_to_run() -> None:
    """Half of the limit's epochs take half of the limit on the GPUs asked for; less on faster ones."""
    found = described(time_limit_s=4 * HOUR)
    each_s = JobRules().seconds(found.application, Configuration("V100", 2))
    assert found.max_epochs * each_s == pytest.approx(4 * HOUR)
    assert found.distribution == UNIFORM
    assert found.due_s == pytest.approx(1000.0 + 2 * 4 * HOUR)
    anywhere = described(time_limit_s=4 * HOUR, gpu_type=None)
    assert anywhere.configurations == ("A100x2", "V100x2")
    assert anywhere.max_epochs == found.max_epochs
    assert anywhere.due_s < found.due_s


def test_epochs_come_from_the_comment_the_application_and_the_limit_in_this_order() -> None:
    assert described("gpusched app=mine epochs=3 gpus=1", OWN).max_epochs == 3.0
    assert described("gpusched app=mine gpus=1", OWN, time_limit_s=HOUR).max_epochs == 10.0
    builtin = builtin_applications()[RESNET].max_epochs
    assert described(f"gpusched app={RESNET}", time_limit_s=HOUR).max_epochs == builtin
    own = {"applications": {"mine": {"seconds_per_epoch": {"V100": [100.0, 50.0]}}}}
    assert described("gpusched app=mine", own, time_limit_s=HOUR).max_epochs == 72.0
    with pytest.raises(InputError, match="epochs of job 7"):
        described("gpusched app=mine", own)


def test_configurations_are_numbers_of_gpus_on_types_with_times() -> None:
    assert described("gpusched app=mine gpus=1,2,4,2*8 types=any", OWN).configurations == (
        "A100x4",
        "2*A100x8",
        "V100x1",
        "V100x2",
    )
    assert described("gpusched app=mine", OWN).configurations == ("V100x2",)
    with pytest.raises(InputError, match="mine has times"):
        described("gpusched app=mine gpus=3", OWN)


def test_a_type_that_the_cluster_has_not_is_not_offered() -> None:
    assert described("gpusched gpus=1 types=v100,h100").configurations == ("V100x1",)
    with pytest.raises(InputError, match="GPUs of job 7"):
        described("gpusched gpus=1 types=h100")
    with pytest.raises(InputError, match=r"GPU type of job 7.*\[gpu_types\]"):
        described("gpusched gpus=1 types=gtx")


def test_an_application_that_needs_more_memory_than_a_type_has_is_not_offered_there() -> None:
    own = {"applications": {"mine": {"like": RESNET, "memory_gib": 30.0, "max_epochs": 5}}}
    assert described("gpusched app=mine types=any", own).configurations == ("A100x2",)


@pytest.mark.parametrize(("gpus", "nodes", "found"), [(16, 2, ("2*A100x8",)), (8, 1, ("A100x8",))])
def test_whole_nodes(gpus: int, nodes: int, found: tuple[str, ...]) -> None:
    assert described(gpus=gpus, nodes=nodes, gpu_type="a100").configurations == found


def test_gpus_that_are_not_alike_on_all_nodes_cannot_be_told() -> None:
    with pytest.raises(InputError, match="5 on 2 nodes"):
        described(gpus=5, nodes=2)


def test_rules_by_account_user_name_and_script() -> None:
    rules = {
        "rules": [
            {"account": "lab", "name": "tr*", "app": RESNET, "checkpoint": True},
            {"user": "a??", "epochs": 7, "app": "bert-squad-global384", "gpus": [1, 2]},
            {"user": "bob", "weight": 9.0},
        ],
        "defaults": {"weight": 0.5, "due": "+2h"},
    }
    found = described(rules=rules)
    assert (found.application, found.max_epochs, found.checkpoints) == (RESNET, 7.0, True)  # the first that says it
    assert found.configurations == ("V100x1", "V100x2")
    assert not found.opted_in
    assert found.weight_eur_per_s == 0.5
    assert found.due_s == 1000.0 + 2 * HOUR
    assert described("gpusched epochs=3", rules).max_epochs == 3.0


def test_the_clock_of_short_trials() -> None:
    """With 600 seconds of the model in one of the cluster, `+2h` is 12 s after the submission."""
    rules = {"clock": {"speed": 600.0}}
    assert described("gpusched due=+2h", rules).due_s == 1000.0 + 12.0
    assert described("", rules, time_limit_s=60.0).max_epochs == described(time_limit_s=36_000.0).max_epochs
    assert described("", rules, time_limit_s=60.0).due_s == pytest.approx(1000.0 + 2.0 * 60.0)
    clock = JobRules.of(rules).clock
    assert clock.unix_s(clock.model_s(1_795_657_761.0)) == pytest.approx(1_795_657_761.0)


def test_a_due_date_without_a_zone_is_local_time() -> None:
    assert seconds_of_due("2026-11-27T08:00", 0.0, 1.0, "") == datetime(2026, 11, 27, 8).timestamp()  # noqa: DTZ001
    assert seconds_of_due("+1d6h30m", 10.0, 1.0, "") == 10.0 + 30.5 * HOUR


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("gpusched epochs=many", "epochs"),
        ("gpusched epochs=0", "epochs"),
        ("gpusched epochs=1e400", "epochs"),
        ("gpusched epochs=nan", "epochs"),
        ("gpusched epoch=3", "epoch=3"),
        ("gpusched please", "please"),
        ("gpusched epochs=3 epochs=4", "each field once"),
        ("gpusched gpus=0", "gpus"),
        ("gpusched gpus=1,,2", "gpus"),
        ("gpusched types=", "types"),
        ("gpusched checkpoint=maybe", "yes or no"),
        ("gpusched due=tomorrow", "due"),
        ("gpusched due=+3x", "due"),
        (f"gpusched due=+{'9' * 400}d", "due"),
        ("gpusched due=+99999999d", "due"),
        ("gpusched due=1960-01-01T00:00", "due"),
        (f"gpusched epochs={'9' * 400}", "epochs"),
        ("gpusched weight=1e400", "weight"),
        (f"gpusched restart={'9' * 5000}", "restart"),
        ("gpusched weight=-1", "weight"),
        ("gpusched app=", "app"),
    ],
)
def test_comments_that_are_refused(comment: str, said: str) -> None:
    with pytest.raises(InputError, match=r"comment of job 7") as error:
        described(comment)
    assert said in str(error.value)


FIELDS = {
    "app": st.sampled_from([RESNET, "mine"]),
    "epochs": st.floats(0.001, 1e6),
    "due": st.sampled_from(["+12h", "+1d6h", "2026-11-27T08:00:00+00:00"]),
    "weight": st.floats(0.0, 10.0),
    "gpus": st.lists(st.tuples(st.integers(1, 4), st.integers(1, 16)), min_size=1, max_size=4, unique=True).map(tuple),
    "types": st.lists(st.sampled_from(["v100", "a100", "any"]), min_size=1, max_size=3).map(tuple),
    "checkpoint": st.booleans(),
    "resize": st.booleans(),
    "restart": st.floats(0.0, 1e5),
}


@given(st.fixed_dictionaries({}, optional=FIELDS), st.sampled_from(["", "by ann "]))
def test_what_a_comment_says_is_read_as_it_was_meant(fields: dict[str, Any], before: str) -> None:
    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, tuple):
            return ",".join(f"{each[0]}*{each[1]}" if isinstance(each, tuple) else each for each in value)
        return repr(value) if isinstance(value, float) else value

    words = " ".join(f"{name}={text(value)}" for name, value in fields.items())
    assert spec_of_comment(f"{before}gpusched {words}", "") == (True, JobSpec(**fields))


def test_a_comment_without_the_word_says_nothing() -> None:
    assert spec_of_comment("epochs=many gpuschedule", "") == (False, JobSpec())


def test_a_file_of_rules(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(
        """
        [gpu_types]
        gpu80 = "A100"
        [gpu_types.b200]
        name = "B200"
        like = "H100"
        speed = 2.0
        [prices]
        energy_eur_per_kwh = 0.3
        [applications.mine]
        like = "resnet50-imagenet-bs64"
        max_epochs = 12
        restart_s = 33
        [[rules]]
        account = "lab"
        app = "mine"
        gpus = [1, "2*8"]
        due = 2026-11-27T08:00:00
        checkpoint = "yes"
        [defaults]
        slack = 3
        [clock]
        speed = 600
        """
    )
    rules = JobRules.load(path)
    assert (rules.gpu_type("gpu80"), rules.gpu_type("b200"), rules.gpu_type("gtx")) == ("A100", "B200", None)
    assert rules.clock.speed == 600.0
    assert rules.file.prices.energy_eur_per_kwh == 0.3
    fast, slow = (rules.seconds("mine", Configuration(name, 1)) for name in ("B200", "H100"))
    assert fast == pytest.approx(slow / 2.0)
    found = rules.describe(replace(JOB, gpu_type="gpu80"))
    assert (found.max_epochs, found.configurations) == (12.0, ("A100x1",))
    assert rules.restart_s(found) == 33.0


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"gpu_types": {"v100": "V1000"}}, "gpu_types.v100"),
        ({"applications": {"mine": {}}}, "applications.mine.seconds_per_epoch"),
        ({"applications": {"mine": {"like": "resnet"}}}, "applications.mine.like"),
        ({"applications": {"mine": {"seconds_per_epoch": [1.0]}}}, "applications.mine.seconds_per_epoch"),
        ({"applications": {"mine": {"seconds_per_epoch": {"X9": [1.0]}}}}, "applications.mine.seconds_per_epoch"),
        ({"applications": {"mine": {"like": RESNET, "distribution": "d"}}}, "applications.mine.distribution"),
        ({"rules": [{"app": "mine"}]}, r"rules\[0\].app"),
        ({"rules": [{"gpu": 2}]}, r"rules\[0\].gpu"),
        ({"defaults": {"app": "mine"}}, "defaults.app"),
        ({"clock": {"speed": 0.0}}, "clock.speed"),
        ({"jobs": []}, "jobs"),
        ({"prices": {"pue": 0.5}}, "prices.pue"),
    ],
)
def test_rules_that_are_refused(rules: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        JobRules.of(rules)


@pytest.mark.parametrize("content", [None, "x = [", b"\xff\xfe"])
def test_files_that_are_refused(content: Any, tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match="--rules"):
        JobRules.load(path)


@pytest.mark.parametrize(
    ("name", "gpu_type"),
    [
        ("v100", "V100"),
        ("tesla_v100-sxm2-32gb", "V100"),
        ("NVIDIA-A100-SXM4-80GB", "A100"),
        ("nvidia_h100_80gb_hbm3", "H100"),
        ("H100-air", "H100-air"),
        ("1g.5gb", None),
        ("nvidia_a100_1g.5gb", None),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", None),
        ("a100+v100", None),
        ("gpu", None),
        ("gtx1080", None),
    ],
)
def test_names_of_gpu_types(name: str, gpu_type: str | None) -> None:
    assert JobRules().gpu_type(name) == gpu_type
