"""Columns of the state arrays.

The state is a few wide arrays, since every array argument of a compiled call costs time. Times are in seconds from the
start of the run, money in €, work in epochs. An index that points nowhere is -1.
"""

from __future__ import annotations

# jobs: float64 (J, JOB_COLUMNS). What a policy may know of a job.
SUBMISSION = 0  # submission time a_j
DUE = 1  # due date d_j
WEIGHT = 2  # tardiness weight ω_j [€/s]
MAX_EPOCHS = 3  # maximum epochs E_j
MIN_TAU = 4  # least seconds per epoch over all configurations
MAX_TAU = 5  # largest finite seconds per epoch over all configurations
DISTRIBUTION = 6  # index of the distribution of epochs needed
CONFIG = 7  # configuration held, or -1
NODE = 8  # node held, or -1
OLD_CONFIG = 9  # configuration held when the round began
OLD_NODE = 10  # node held when the round began
EPOCHS = 11  # epochs done now
BASE_EPOCHS = 12  # epochs done when the present interval began
BASE_S = 13  # when the present interval began
READY_S = 14  # from when on the present interval makes progress (restart overhead)
START_S = 15  # first start, NaN before it
END_S = 16  # completion, NaN before it
ENERGY = 17  # energy cost attributed so far [€]
TARDINESS = 18  # tardiness cost accrued so far [€]
WAKE_S = 19  # time at which a policy asked to look again; inf: no plan for it, -inf: no plan holds
MILESTONE = 20  # number of the next milestone
SWITCHES = 21  # changes of configuration or node after the first start, pauses included
JOB_COLUMNS = 22

# hidden: float64 (J, FUTURE_TAU + C). What no policy may know.
NEEDED = 0  # epochs needed X_j
FINISH_S = 1  # completion time if the job goes on as it runs; inf while it does not run
FUTURE = 2  # the job's row of `jobs`, JOB_COLUMNS of them, to be disclosed when it is submitted
FUTURE_TAU = FUTURE + JOB_COLUMNS  # the job's seconds per epoch, C of them, likewise

# nodes: int64 (N, NODE_COLUMNS).
NODE_TYPE = 0  # index of the GPU type
NODE_GPUS = 1  # number of GPUs
FREE = 2  # GPUs not held now
OLD_FREE = 3  # GPUs not held when the round began
NODE_COLUMNS = 4

# configs: int64 (C, CONFIG_COLUMNS).
CONFIG_TYPE = 0  # index of the GPU type
CONFIG_GPUS = 1  # GPUs held on the node
CONFIG_COLUMNS = 2

# clock: float64 (CLOCK_COLUMNS,).
NOW = 0  # present time
BILL = 1  # energy cost of all nodes so far [€]
LATENESS = 2  # tardiness cost of all jobs so far [€]
BILL_RATE = 3  # energy cost rate of all nodes now [€/s]
RESTART = 4  # restart overhead [s]
REVIEW = 5  # interval of the fixed reviews; inf: none
IDLE_REVIEW = 6  # how far time moves when nothing runs and nothing is pending
LAST_BUSY = 7  # when a job last ran, or was still to come
CLOCK_COLUMNS = 8

# count: int64 (COUNT_COLUMNS,).
SUBMITTED = 0  # jobs submitted so far: the next one to come
ACTIVE = 1  # jobs submitted and not completed
DONE = 2  # jobs completed
LOGGED = 3  # rows of the log in use
ROUND = 4  # decision rounds so far
MILESTONES = 5  # milestones per job; 0: none
ASKED = 6  # jobs of this round that have been asked
TO_ASK = 7  # jobs that this round asks
IDLE = 8  # idle reviews in a row: nothing ran, and nothing was pending
LOGGING = 9  # 1 if intervals are logged
COUNT_COLUMNS = 10

# log: float64 (L, LOG_COLUMNS), one row per interval in which a job held one configuration on one node.
LOG_JOB = 0
LOG_NODE = 1
LOG_CONFIG = 2
LOG_START = 3
LOG_READY = 4
LOG_END = 5
LOG_EPOCHS = 6  # epochs done in the interval
LOG_COLUMNS = 7
