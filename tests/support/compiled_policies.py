"""The policies whose rounds take no solver in Python: quick enough for properties over many instances."""

from examples.compiled_policy import ExpectedCost
from gpusched_baselines import LocalSearch, PathRelinking, RandomGreedy, make_policy, policy_names, registry
from gpusched_env import Policy

# The others decide as "sts" does but for the plans, which tests/baselines/solvers compare.
COMPILED = [name for name in policy_names() if registry.POLICIES[name].compiled]
POLICIES: dict[str, Policy] = {name: make_policy(name) for name in COMPILED} | {
    "random-greedy": RandomGreedy(constructions=20),
    "random-greedy:mean": RandomGreedy(constructions=20, name="random-greedy:mean", epochs="mean"),
    "local-search": LocalSearch(constructions=20),
    "path-relinking": PathRelinking(constructions=20),
    "expected-cost": ExpectedCost(),
}
