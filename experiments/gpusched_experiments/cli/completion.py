"""What the shell completes: names of policies, agents, scenarios and tracks."""

from gpusched_agents.any_policy import known_policies
from gpusched_baselines.registry import policy_names
from gpusched_env.workload import list_scenarios, list_tracks


def a_policy(incomplete: str) -> list[str]:
    """Complete the name of a policy or of a shipped agent."""
    agents = [name for name in known_policies() if name.startswith("agent:")]
    return [name for name in (*policy_names(), *agents) if name.startswith(incomplete)]


def policies(incomplete: str) -> list[str]:
    """Complete the last of names separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in a_policy(last) if name not in before.split(",")]


def a_scenario(incomplete: str) -> list[str]:
    """Complete the name of a built-in scenario or track."""
    return [name for name in (*list_scenarios(), *list_tracks()) if name.startswith(incomplete)]


def a_track(incomplete: str) -> list[str]:
    """Complete the name of a built-in track."""
    return [name for name in list_tracks() if name.startswith(incomplete)]
