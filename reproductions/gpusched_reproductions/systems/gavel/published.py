"""What Gavel's authors got from their own simulator: outputs stored in the notebooks of their repository.

github.com/stanford-futuredata/gavel, commit c4fa400, `scheduler/notebooks/figures/evaluation`: `makespan.ipynb`,
`continuous_jobs.ipynb` and `continuous_jobs_multigpu.ipynb`, cell 10 of each.
"""

from __future__ import annotations

MAKESPAN = "makespan.ipynb, cell 10"
SINGLE_GPU = "continuous_jobs.ipynb, cell 10"
MULTI_GPU = "continuous_jobs_multigpu.ipynb, cell 10"

# Makespan [h], mean of seeds 0, 1 and 2, by the number of jobs that are there at the beginning.
FIFO_MAKESPAN_H = {100: 182.32, 300: 295.56, 500: 426.58, 700: 619.52}
GAVEL_MAKESPAN_H = {100: 161.16, 300: 161.16, 500: 169.42, 700: 244.23}

# Mean time from submission to completion [h], seed 0, jobs 4000 to 4999, by arrivals per hour.
FIFO_PERF_H = {4.0: 17.08, 4.8: 22.24}
LAS_H = {4.0: 23.49, 4.8: 35.79, 5.6: 95.99}
LAS_PERF_H = {4.0: 16.82, 4.8: 18.97, 5.6: 28.96}
MULTI_FIFO_PERF_H = {2.0: 27.68}
MULTI_LAS_H = {2.0: 28.91}
MULTI_LAS_PERF_H = {2.0: 21.90}
