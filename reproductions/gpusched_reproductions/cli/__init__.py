"""The commands of what is reproduced."""

from gpusched_env.errors import InputError

COMMANDS = {
    name: f"gpusched_reproductions.cli.{name}:{name}_command" for name in ("certify", "reproduce", "conform", "study")
}
"""By command, where its function is."""
DRAWS = "gpusched_experiments.report.figures"


def chosen_names(option: str, text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) != len(names) or not set(names) <= set(allowed):
        raise InputError(option, text, f"names separated by commas, each once, of {', '.join(allowed)}")
    return names
