"""Traces written in the Standard Workload Format (`swf`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusched_env.workload.traces.trace import Trace


def swf_text(trace: Trace) -> str:
    """Write a trace in this format: one processor for each GPU, times in whole seconds from the first submission.

    A share of a GPU counts as one processor. Users, tenants (as groups) and GPU types (as partitions) are numbered in
    order of appearance, and named in the header.
    """
    named = [("User", trace.user), ("Group", trace.tenant), ("Partition", trace.gpu_type)]
    numbers = [{name: n for n, name in enumerate(dict.fromkeys(names or ()), 1)} for _, names in named]
    head = ["; Version: 2.2", f"; Note: jobs of {trace.name}, a processor is a GPU", f"; MaxJobs: {len(trace)}"]
    for (kind, _), each in zip(named, numbers, strict=True):
        head += [f"; {kind}: {number} {name}" for name, number in each.items()]
    lines = []
    for i, (submit, run, gpus) in enumerate(zip(trace.submission_s, trace.duration_s, trace.gpus, strict=True)):
        begin = round(float(submit))
        wait = -1 if trace.start_s is None else round(float(trace.start_s[i])) - begin
        count = math.ceil(float(gpus))
        told = [number[names[i]] if names else -1 for (_, names), number in zip(named, numbers, strict=True)]
        row = [i + 1, begin, wait, max(1, round(float(run))), count, -1, -1, count, -1, -1, 1]
        lines.append(" ".join(map(str, [*row, *told[:2], -1, -1, told[2], -1, -1])))
    return "\n".join([*head, *lines]) + "\n"
