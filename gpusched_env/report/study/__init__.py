"""A study of learning: does an agent learn, and from what?"""

from gpusched_env.report.study.plan import StudyPlan, TrainingRun, evaluated_often
from gpusched_env.report.study.study import StudyOutcome, StudyWatcher, study

__all__ = ["StudyOutcome", "StudyPlan", "StudyWatcher", "TrainingRun", "evaluated_often", "study"]
