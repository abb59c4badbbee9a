"""A study of learning: does an agent learn, and from what?"""

from gpusched_experiments.learning.plan import StudyPlan, TrainingRun, evaluated_often
from gpusched_experiments.learning.study import StudyOutcome, StudyWatcher, study

__all__ = ["StudyOutcome", "StudyPlan", "StudyWatcher", "TrainingRun", "evaluated_often", "study"]
