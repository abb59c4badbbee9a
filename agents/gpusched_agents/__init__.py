"""Learned agents: training, folders of agents, and evaluation on held-out seeds.

Only training in an environment and its parts (`ControlTraining` and its `AdaptationConfig`, `SchedulerVecEnv`,
`make_sb3_vec_env`, `save_sb3`, `load_sb3`) need torch and Stable-Baselines3, the extra `agents`, and import them at
first use. Decisions of an agent and `AdaptationTraining` do not need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import MissingExtraError
from gpusched_env.lazy import lazy_names
from gpusched_env.version import VERSION

if TYPE_CHECKING:
    from gpusched_agents.any_policy import make_any_policy
    from gpusched_agents.evaluation import Evaluation, Model, evaluate
    from gpusched_agents.files.description import AgentDescription
    from gpusched_agents.files.storage import load_agent, save_agent
    from gpusched_agents.network.control_models import JobSetExtractor, job_set_policy
    from gpusched_agents.network.control_policy import ControlPolicy
    from gpusched_agents.policy import load_policy
    from gpusched_agents.sb3 import SchedulerVecEnv, make_sb3_vec_env
    from gpusched_agents.sb3_files import SaveSb3, save_sb3
    from gpusched_agents.sb3_models import load_sb3
    from gpusched_agents.spec import AgentSpec, NetworkConfig
    from gpusched_agents.study import make_training
    from gpusched_agents.training.adaptation_training import AdaptationTraining
    from gpusched_agents.training.algorithm_config import AdaptationConfig, EsConfig
    from gpusched_agents.training.config import TrainingConfig
    from gpusched_agents.training.control_training import ControlTraining

__all__ = [
    "AdaptationConfig",
    "AdaptationTraining",
    "AgentDescription",
    "AgentSpec",
    "ControlPolicy",
    "ControlTraining",
    "EsConfig",
    "Evaluation",
    "JobSetExtractor",
    "Model",
    "NetworkConfig",
    "SaveSb3",
    "SchedulerVecEnv",
    "TrainingConfig",
    "evaluate",
    "job_set_policy",
    "load_agent",
    "load_policy",
    "load_sb3",
    "make_any_policy",
    "make_sb3_vec_env",
    "make_training",
    "save_agent",
    "save_sb3",
]

__version__ = VERSION

_get = lazy_names(__name__, __file__)
_OF_THE_EXTRA = ("sb3_contrib", "stable_baselines3", "torch")


def __getattr__(name: str) -> Any:
    """Import `name` at its first use (PEP 562)."""
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _OF_THE_EXTRA:
            raise
        raise MissingExtraError(package, "agents", "algorithms of Stable-Baselines3") from error
