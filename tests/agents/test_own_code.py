import pickle
import re
import sys

import pytest

from commands import assert_one_error, gpusched
from gpusched_agents.any_policy import full_name, is_agent, is_own_policy, make_any_policy, shown_name
from gpusched_agents.files.imported_files import files_from
from gpusched_agents.files.storage import find_agent
from gpusched_env.errors import RunError
from gpusched_experiments.report.cell import origin
from gpusched_experiments.report.compared_run import ComparedRun, ComparedWorkload
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.warm_up import tiny_instance
from gpusched_operations.service.decision import PolicyCatalogue
from refusals import refused

RULE = """
from dataclasses import dataclass
from beside import NAME

@dataclass(frozen=True, slots=True)
class Rule:
    name: str = NAME
    preemption: bool = False
    def decide(self, view, rng): ...

class Asks:
    def __init__(self, number): ...

class Bare:
    def decide(self, view, rng): ...

POLICY = Rule("constant")
"""


@pytest.fixture
def rule(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("NAME = 'rule'\n")
    (tmp_path / "rule.py").write_text(RULE)
    return tmp_path / "rule.py"


def test_a_file_and_a_module_name_the_same_policy_wherever_the_command_runs(rule, tmp_path, monkeypatch):
    assert full_name("rule.py:Rule") == full_name("rule:Rule") == f"{rule}:Rule"
    assert full_name("rule.py") == f"{rule}:POLICY"
    given = full_name("rule:Rule")
    monkeypatch.chdir(tmp_path.parent)
    assert make_any_policy(given).name == shown_name(given) == "rule"
    assert make_any_policy(f"{rule}:POLICY").name == "constant"


@pytest.mark.parametrize(
    "name", ["edf", "sts-x:plan", "gavel:fifo-agnostic", "edf:mean", "agent:default", "sb3:a.py", "tuned:b.py"]
)
def test_shipped_policies_and_files_of_data_are_no_code(name):
    assert not is_own_policy(name)
    assert is_agent("a.py:Rule")


def test_an_option_of_a_shipped_policy_is_no_name_in_a_file_of_the_user(tmp_path, monkeypatch):
    (tmp_path / "edf.py").write_text("mean = other = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert make_any_policy("edf:mean").name == full_name("edf:mean") == "edf:mean"
    assert not is_own_policy("edf:mean")
    assert is_own_policy("edf:other")
    with refused("policy", "edf:meen", "one of edf:mean, .*there is no module edf"):
        monkeypatch.chdir(tmp_path.parent)
        make_any_policy("edf:meen")


def test_results_of_another_source_or_class_are_other_results(rule):
    before = origin(f"{rule}:Rule")
    assert before == origin(f"{rule}:Rule") != origin(f"{rule}:POLICY")
    (rule.parent / "beside.py").write_text("NAME = 'other'\n")
    assert origin(f"{rule}:Rule") != before
    assert make_any_policy(f"{rule}:Rule").name == "other"


@pytest.mark.parametrize("text", ["own_files/rules.py:Rule", "own_modules.rules:Rule"])
def test_results_are_of_all_that_a_rule_imports_of_its_package(rule, text):
    package = rule.parent / re.split("[./]", text)[0]
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("FIRST = 'a'\n")
    (package / "helper.py").write_text("from .deep.second import SECOND\n")
    (package / "deep" / "second.py").write_text("SECOND = 'b'\n")
    (package / "third.py").write_text("THIRD = 'c'\n")
    beside = f"from {package.name} import FIRST\nfrom {package.name}.helper import SECOND\nfrom . import third\n"
    beside += "from beside import NAME as LAST\nNAME = FIRST + SECOND + third.THIRD + LAST"
    (package / "rules.py").write_text(RULE.replace("from beside import NAME", beside))
    names, origins = [make_any_policy(text).name], {origin(full_name(text))}
    for file in ("__init__.py", "deep/second.py", "third.py", "../beside.py"):
        with (package / file).open("a") as opened:
            opened.write(f"FIRST = SECOND = THIRD = NAME = '{len(names)}'\n")
        names.append(make_any_policy(text).name)
        origins.add(origin(full_name(text)))
    assert names == ["abcrule", "1bcrule", "12crule", "123rule", "1234"]
    assert len(origins) == len(names)


def test_modules_that_are_not_of_the_user_stay_as_they_are(rule):
    folder = rule.parent / "site-packages"
    for package, file in (("gpusched_env", rule), ("numpy", folder / "rule.py")):
        (file.parent / package).mkdir(parents=True)
        (file.parent / package / "__init__.py").touch()
        file.write_text(f"import {package}\n{RULE}".replace("from beside import NAME", "NAME = 'rule'"))
        before = sys.modules[package]
        assert file.parent / package / "__init__.py" not in files_from(file)
        assert make_any_policy(f"{file}:Rule").name == "rule"
        assert sys.modules[package] is before


def test_a_rule_that_fails_is_named_with_its_line(rule):
    rule.write_text(RULE.replace("decide(self, view, rng): ...", "decide(self, view, rng):\n        return 1 / 0", 1))
    said = f"policy rule: {rule}:10: ZeroDivisionError: division by zero"
    assert_one_error(gpusched("simulate", "-p", "rule.py:Rule", "--scenario", "tiny"), [f"error: {said}"], code=1)
    policy = make_any_policy("rule.py:Rule")
    workload = ComparedWorkload.of(0, tiny_instance(), [policy])
    with pytest.raises(RunError, match="^" + re.escape(said)):
        ComparedRun(workload, policy, False, Billing()).run()
    with pytest.raises(ZeroDivisionError):  # an object of Python keeps its traceback
        ComparedRun(workload, type(policy)("other"), False, Billing()).run()


def test_another_process_loads_the_same_source_or_none(rule):
    policy = make_any_policy(f"{rule}:POLICY")
    sent = pickle.dumps(policy)
    assert pickle.loads(sent) is policy  # noqa: S301 - our own
    rule.write_text(RULE + "\n# changed\n")
    with pytest.raises(RunError, match=r"rule\.py:POLICY was changed"):
        pickle.loads(sent)  # noqa: S301


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("none.py:Rule", "no file"),
        ("rule.py:Rul", "there are Rule"),
        ("rule.py:Asks", "without arguments .*number"),
        ("rule.py:Bare", "Bare lacks name, preemption"),
        ("broken.py:Rule", "NameError: name 'undefined' is not defined, line 2"),
        ("agnt:default", "^one of agent:default, .*FILE.py:Class; there is no module agnt$"),
        ("ends.py", "SystemExit: 0, line 2"),
        ("package.rules:Rule", "ValueError: of the package"),
    ],
)
def test_what_is_wrong_with_code_of_the_user_is_one_error(rule, text, allowed):
    (rule.parent / "broken.py").write_text("x = 1\nundefined\n")
    (rule.parent / "ends.py").write_text("import sys\nsys.exit(0)\n")
    (rule.parent / "package").mkdir()
    (rule.parent / "package" / "__init__.py").write_text("raise ValueError('of the package')\n")
    with refused("policy", full_name(text), allowed):
        make_any_policy(text)


def test_an_unknown_name_gets_the_like_ones_and_the_way_to_ones_own():
    with refused("policy", "edff", r"^one of edf, .*FILE\.py:Class$") as caught:
        make_any_policy("edff")
    assert len(caught.value.allowed) < 300
    with refused("agent", "agent:slack-pp", "^one of agent:slack-ppo, .*agent:default"):
        make_any_policy("agent:slack-pp")


def test_a_service_answers_by_the_name_of_ones_own_policy(rule):
    catalogue = PolicyCatalogue.of("edf,rule.py:Rule")
    assert catalogue.names == ("edf", "rule")
    assert catalogue.make("rule").name == "rule"
    assert catalogue.version("rule") != catalogue.version("edf")
    (rule.parent / "beside.py").write_text("NAME = 'edf'\n")
    with refused("--policies", f"{rule}:Rule", "not edf, which another one has"):
        PolicyCatalogue.of("rule.py:Rule")


def test_policies_of_ones_own_and_agents_do_not_take_each_others_names(rule):
    folder = str(find_agent("default"))
    catalogue = PolicyCatalogue.of("edf,rule.py:Rule", {"edf": folder, "rule": folder})
    made = [catalogue.make(name) for name in ("edf", "rule", "agent:edf")]
    assert [each.name for each in made[:2]] == ["edf", "rule"]
    assert made[2] is catalogue.make("agent:rule") is not made[0]
    with refused("--policies", ["rule", "rule"], "each once"):
        PolicyCatalogue.of("rule.py:Rule,rule:Rule")
    (rule.parent / "beside.py").write_text("NAME = 'agent:rule'\n")
    with refused("--policies", f"{rule}:Rule", "not agent:rule"):
        PolicyCatalogue.of("rule.py:Rule", {"rule": folder})
