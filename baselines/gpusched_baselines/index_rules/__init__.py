"""Index rules: every job has an index computed from it alone, and jobs get GPUs in the order of the index."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_baselines.index_rules.policy import (
        IndexRule,
        atc,
        atc_co_located,
        atc_worst,
        gittins,
        las,
        sept,
        srpt_worst,
    )

__all__ = ["IndexRule", "atc", "atc_co_located", "atc_worst", "gittins", "las", "sept", "srpt_worst"]

__getattr__ = lazy_names(__name__, __file__)
