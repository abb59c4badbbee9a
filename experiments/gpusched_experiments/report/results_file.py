"""The results of a comparison as one JSON file: every run, the statistics, and where they come from."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import PolicyStatistics

FORMAT = "gpusched comparison"
VERSION = 1


def results_json(
    runs: Sequence[RunSummary],
    rows: Sequence[PolicyStatistics],
    reference: str,
    provenance: Mapping[str, Any],
) -> str:
    """Write a comparison as JSON; what is not a number (a gap to a bound of 0) becomes null.

    Args:
        runs: Every run.
        rows: The statistics of every policy.
        reference: Name of the policy that savings are measured against.
        provenance: Where the results come from: command, versions, scenario.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": dict(provenance),
        "reference": reference,
        "seeds": sorted({run.seed for run in runs}),
        "policies": [_finite(asdict(row)) for row in rows],
        "runs": [_finite(run.as_dict()) for run in runs],
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
