"""Learned agents: what stands between a trained model and a fair comparison.

Nothing here imports torch or Stable-Baselines3 (extra `agents`): a model is anything that predicts.
"""

from gpusched_agents.evaluate import evaluate
from gpusched_agents.evaluation import Evaluation
from gpusched_agents.model import Model

__all__ = ["Evaluation", "Model", "evaluate"]
