"""A study of learning: does an agent learn, and from what?"""

from gpusched_reproductions.learning.conduct import StudyWatcher, study
from gpusched_reproductions.learning.plan import StudyPlan, TrainingRun, evaluated_often

__all__ = ["StudyPlan", "StudyWatcher", "TrainingRun", "evaluated_often", "study"]
