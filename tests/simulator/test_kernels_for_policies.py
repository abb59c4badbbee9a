"""What compiled policies are made of: all in one place, documented, and callable from a kernel."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import gpusched_baselines
from first_rounds import begin_run
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.simulator import State
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Curve, at, kernel, lean_kernel
from instances import HOUR, three_jobs


@lean_kernel
def empty_again(board: Board, config: int) -> bool:
    sim.clear(board, board.active[: board.count[at.ACTIVE]])
    sim.let_empty_cells_go(board)
    sim.survey(board)
    sim.measure(board)
    return sim.fits(board, config) and not sim.is_opportunistic_config(board, config)


@kernel
def place_and_release(board: Board, job: int, config: int, results: np.ndarray) -> None:
    results[0], results[1] = sim.can_place(board, job, config), sim.powers_on_node(board, job, config)
    results[2], results[3] = sim.should_consolidate(board, job, config)
    results[4] = sim.place(board, job, config)
    results[5], results[6] = sim.charge(board, job, config) * HOUR, sim.bill_rate(board) * HOUR
    results[7] = sim.due_date_timer_s(board, job) / HOUR
    results[8], results[9] = sim.would_restart(board, job), sim.keeps_config(board, job, config)
    sim.release(board, job)
    results[10] = board.jobs[job, at.CONFIG]
    sim.set_preferred_node(board, job, 1, 0)
    results[12], results[13] = board.jobs[job, at.PREFERRED_NODE], board.jobs[job, at.PREFERRED_SLOT]
    sim.clear_preferred_node(board, job)
    sim.apply_choice(board, job, True, 5.0)
    results[11] = empty_again(board, config)


@kernel
def estimate(board: Board, job: int, results: np.ndarray) -> None:
    """Call the functions that estimate and sort, and write their results."""
    known = sim.curve_of(board, job)
    curve = Curve(known.edges, known.survival, known.tail)
    results[0], results[1] = sim.bin_of(curve.edges, 0.6), sim.survival_after(curve, 0.5)
    results[2], results[3] = sim.expected_rest(curve, 0.0), sim.expected_left(board, job)
    results[4], results[5] = sim.misses(2.0, 1.0), sim.misses(1.0, 1.0)
    results[6] = sim.ranked(np.array([2.0, 1.0]), 2)[0]
    results[7] = sim.ranked_in_groups(np.array([1, 0]), np.array([0.0, 5.0]))[0]


@kernel
def look_around(board: Board, job: int, config: int, results: np.ndarray) -> None:
    """Call the functions of co-runners on shared GPUs, and write their results."""
    on = sim.residents(board)
    results[0], results[1] = on.last.shape[0], on.before.shape[0]
    results[2] = sim.speed_beside(board, job, config, 0, on)
    results[3], results[4] = sim.speed_now(board, job, config), sim.seconds_now(board, job, config) / HOUR


@pytest.fixture
def board() -> Board:
    """Return the first round of the instance that `test_hand_computed.py` works out."""
    state = begin_run(three_jobs())
    return state.board


@kernel
def look_at_prices(board: Board, results: np.ndarray) -> None:
    results[0], results[1] = sim.period_at(board.prices, 1.5 * HOUR), sim.period_end(board.prices, 1) / HOUR
    results[2], results[3] = sim.known_until_s(board) / HOUR, sim.mean_price(board, 0.0, 2.0 * HOUR)
    results[4], results[5] = sim.forecast_of(board, 2), sim.tenants_with_quotas(board)


def test_a_kernel_looks_at_prices():
    """Prices of 1 and 3 € are published, that of the third hour is not: without history it is the reference, 1 €."""
    hours, told = np.arange(3) * HOUR, np.array([-np.inf, -np.inf, HOUR])
    series = PriceSeries(hours, np.array([1.0, 3.0, 2.0]), published_s=told)
    state = State(three_jobs().with_mechanisms(series))
    state.advance()
    results = np.empty(6)
    look_at_prices(state.board, results)
    assert results.tolist() == [1.0, 2.0, 2.0, 2.0, 1.0, 0.0]


def test_all_that_is_public_is_listed_in_order_and_nothing_hidden_from_policies_or_that_moves_time():
    public = {name for name, value in vars(sim).items() if not name.startswith("_")}
    assert list(sim.__all__) == sorted(sim.__all__, key=lambda name: (not name.isupper(), name))
    assert public == set(sim.__all__)
    moving = {"Hidden", "State", "advance", "decide", "begin_round", "commit_round", "run_to_round"}
    assert not moving & set(sim.__all__)


@pytest.mark.parametrize("name", sim.__all__)
def test_every_name_is_documented(name):
    assert len(getattr(sim, name).__doc__) > 20


def test_the_kernels_of_this_test_call_every_function():
    """Those that are not called here are called by policies that are shipped."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(test_every_name_is_documented)))
    bodies = [f for f in tree.body if isinstance(f, ast.FunctionDef) and "kernel" in ast.unparse(f.decorator_list[:1])]
    called = {ast.unparse(c.func).removeprefix("sim.") for f in bodies for c in ast.walk(f) if isinstance(c, ast.Call)}
    texts = [path.read_text(encoding="utf-8") for path in Path(gpusched_baselines.__file__).parent.rglob("*.py")]
    calls = [c for text in texts for c in ast.walk(ast.parse(text)) if isinstance(c, ast.Call)]
    called |= {ast.unparse(c.func).removeprefix("sim.") for c in calls}
    assert called >= {name for name in sim.__all__ if hasattr(getattr(sim, name), "py_func")}


def test_a_kernel_looks_around(board):
    """No job shares a GPU here: no lists, no model, whole GPUs at full speed, an hour an epoch."""
    results = np.zeros(5)
    look_around(board, 0, 0, results)
    assert results[:2].tolist() == [0.0, 0.0]
    assert np.isnan(results[2])
    assert results[3:].tolist() == [1.0, 1.0]


def test_a_kernel_places_and_releases(board):
    results = np.full(14, np.nan)
    place_and_release(board, 0, 0, results)
    timer_h = (3.5 - 1.009 * 4 * 2 / 3) / (1 - 1.009 * 2 / 3)  # on two GPUs from then on, and 0.9 % to spare
    assert results == pytest.approx([1, 1, 1, 0, 1, 1.0, 1.0, timer_h, 0, 0, -1, 1, 1, 0])
    assert board.jobs[0, [at.PREFERRED_NODE, at.TIMER_S]].tolist() == [-1.0, 5.0]


def test_a_kernel_reckons_with_what_is_known_of_the_epochs(board):
    results = np.full(8, np.nan)
    estimate(board, 0, results)
    assert results == pytest.approx([1, 0.25, 0.75, 3.0, 1, 0, 1, 1])
