"""What every kernel keeps to: few parameters, and hidden things only where the state is moved."""

import ast
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.kernel import _parts
from gpusched_env.simulator import layout as at

ROOT = Path(__file__).parents[1]
PACKAGES = ("gpusched_env", "baselines", "agents", "experiments", "operations", "benchmarks")
MOST_PARAMETERS = 8
DRAWS_IT_ITSELF = (
    "baselines/gpusched_baselines/rollout_policy/"  # what jobs need in a rollout, from their distributions
)
MAY_TAKE_HIDDEN = (
    *(f"gpusched_env/{part}/" for part in ("simulator", "mechanisms", "observation", "envs/vector")), DRAWS_IT_ITSELF,
    "operations/gpusched_operations/forecast/compiled.py",  # so does this: needs that it drew
    "baselines/gpusched_baselines/adaptation_env/run.py",  # an environment: it moves the state, and rewards use needs
)  # fmt: skip


def kernels() -> dict[str, ast.FunctionDef]:
    found = {}
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any("kernel" in ast.unparse(d) for d in node.decorator_list):
                found[f"{path.relative_to(ROOT).as_posix()}::{node.name}"] = node
    return found


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


@pytest.fixture(scope="module")
def every_kernel() -> dict[str, ast.FunctionDef]:
    found = kernels()
    assert len(found) > 150  # else the tests below would show nothing
    return found


def test_no_kernel_has_more_than_eight_parameters(every_kernel):
    long = {name: len(parameters(node)) for name, node in every_kernel.items()}
    assert {name: count for name, count in long.items() if count > MOST_PARAMETERS} == {}


def test_only_kernels_that_move_the_state_or_observe_it_take_what_is_hidden(every_kernel):
    takers = {name for name, node in every_kernel.items() if any(takes_hidden(each) for each in parameters(node))}
    assert takers
    assert {name for name in takers if not name.startswith(MAY_TAKE_HIDDEN)} == set()


BOOKS = {"jobs", "tau", "nodes", "capacity", "quota", "cells", "hosts", "tree", "clock", "count", "active"}
"""Arrays of the board that the simulator alone writes: policies have `memory`."""


def test_policies_write_nothing_of_the_board_themselves_and_it_is_seen_if_they_do(every_kernel):
    policies = {name: node for name, node in every_kernel.items() if name.startswith("baselines/")}
    assert len(policies) > 100
    written = {name: books_written(node) for name, node in policies.items()}
    assert {name: lines for name, lines in written.items() if lines} == {}
    text = """
def policy(board, memory):
    jobs, clock = board.jobs, board.clock
    jobs[0, 1] = 2.0
    board.nodes[0, at.FREE] -= 1
    memory[0], board.memory[jobs[0], 1] = 1.0, clock[0]
    jobs[0, 1], memory[1] = 1.0, 2.0
"""
    assert books_written(ast.parse(text).body[0]) == [4, 5, 7]


def books_written(kernel: ast.FunctionDef) -> list[int]:
    """List the lines on which a kernel assigns to elements of the books of its `board`, whatever it calls them."""
    others: set[str] = set()
    lines = []
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign):
            pairs = zip(parts(node.targets[0]), parts(node.value), strict=False)
            others |= {target.id for target, value in pairs if isinstance(target, ast.Name) and is_book(value)}
    for node in ast.walk(kernel):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign) else targets
        for target in (part for each in targets for part in parts(each)):
            if isinstance(target, ast.Subscript):
                array = target.value
                if is_book(array) or (isinstance(array, ast.Name) and array.id in others):
                    lines.append(node.lineno)
    return sorted(set(lines))


def parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def is_book(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "board" and node.attr in BOOKS


def takes_hidden(parameter: ast.arg) -> bool:
    annotation = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    return parameter.arg == "hidden" or "Hidden" in annotation


ARRAY = np.arange(3)


def reads_attributes():
    return at.NOW + at.NO_SUCH_NAME + ARRAY.size


def test_a_digest_has_what_attributes_of_modules_are_and_of_those_that_are_missing_their_names():
    parts = list(_parts(reads_attributes.__code__, reads_attributes.__globals__))
    of_modules = {parts[k]: parts[k + 1] for k in range(len(parts) - 1) if isinstance(parts[k], str)}
    assert of_modules["NOW"] == at.NOW
    assert of_modules["NO_SUCH_NAME"] is None
    assert of_modules["ARRAY"] is ARRAY
    assert "size" not in of_modules
