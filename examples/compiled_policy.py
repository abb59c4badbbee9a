"""Write a compiled policy: kernels that take the board, and an object around them that inherits nothing."""

from gpusched_env import GpuClusterEnv, View, load_scenario, make_instance, rollout, simulate
from gpusched_env.simulator.kernels import Board, Choice, ask_order, at, expected_left, fits, kernel, place


@kernel
def cheapest(board: Board, job: int) -> int:
    """Return the configuration, of those that fit now, in which the job is expected to cost least; -1: none fits."""
    best, least_eur, left = -1, float("inf"), expected_left(board, job)
    time_left_s = board.jobs[job, at.DUE] - board.clock[at.NOW]
    rate = board.planning_rate[int(board.jobs[job, at.APPLICATION])]  # what each configuration costs, alone [€/s]
    for config in range(board.tau.shape[1]):
        seconds = left * board.tau[job, config]  # inf where the job may not use it
        late_eur = board.jobs[job, at.WEIGHT] * max(0.0, seconds - time_left_s)
        cost_eur = seconds * rate[config] + late_eur
        if cost_eur < least_eur and fits(board, config):
            best, least_eur = config, cost_eur
    return best


@kernel
def place_all(board: Board) -> None:
    """Place every job that the round asks, in order, on its cheapest configuration."""
    for job in board.order[: board.count[at.TO_ASK]]:
        config = cheapest(board, job)
        if config >= 0:
            place(board, job, config)


class ExpectedCost:
    """The most pressing job first; each gets the configuration in which it is expected to cost least."""

    name, preemption, job_order = "expected-cost", True, "pressure"

    def decide(self, view: View, _: object) -> None:
        """Decide a round, for `simulate`."""
        ask_order(view, self.job_order, waiting_only=not self.preemption)
        place_all(view.board)

    def choose(self, view: View, job: int) -> Choice:
        """Decide one job, for the environment."""
        return Choice(cheapest(view.board, job))


if __name__ == "__main__":
    policy, instance = ExpectedCost(), make_instance(load_scenario("default"), seed=0)
    env = GpuClusterEnv("default", job_order=policy.job_order, preemption=policy.preemption, milestones=0)
    for interface, result in (("simulate", simulate(instance, policy)), ("rollout", rollout(env, policy, seed=0)[0])):
        print(f"{interface:10}{result.energy_eur:8.2f} € energy{result.tardiness_eur:8.2f} € tardiness")
