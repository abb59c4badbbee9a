"""Index rules: every job has a number, made from it alone, and the GPUs go to the jobs in its order."""

from gpusched_baselines.index_rules.policy import IndexRule, atc, atc_company, atc_worst, gittins, las, sept, srpt_worst

__all__ = ["IndexRule", "atc", "atc_company", "atc_worst", "gittins", "las", "sept", "srpt_worst"]
