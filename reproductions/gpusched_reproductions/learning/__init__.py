"""A study of learning: does an agent learn, and from what?"""

from gpusched_reproductions.learning.plan import StudyPlan, TrainingRun, evaluated_often
from gpusched_reproductions.learning.trainings import study

__all__ = ["StudyPlan", "TrainingRun", "evaluated_often", "study"]
