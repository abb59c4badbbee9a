"""The published experiments, run again: tables with intervals, figures, and beside them what the sources reported."""

from gpusched_experiments.published.choice import Choice
from gpusched_experiments.published.experiment import Experiment
from gpusched_experiments.published.experiments import EXPERIMENTS
from gpusched_experiments.published.reproduction import Watcher, reproduce, run_experiment

__all__ = ["EXPERIMENTS", "Choice", "Experiment", "Watcher", "reproduce", "run_experiment"]
