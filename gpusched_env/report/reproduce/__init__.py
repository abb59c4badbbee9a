"""The thesis's experiments, run again: tables with intervals, figures, and beside them what the sources reported."""

from gpusched_env.report.reproduce.choice import Choice
from gpusched_env.report.reproduce.experiment import Experiment
from gpusched_env.report.reproduce.experiments import EXPERIMENTS
from gpusched_env.report.reproduce.reproduce import Outcome, Watcher, reproduce

__all__ = ["EXPERIMENTS", "Choice", "Experiment", "Outcome", "Watcher", "reproduce"]
