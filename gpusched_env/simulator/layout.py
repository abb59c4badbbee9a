"""Columns of the state arrays.

The arrays, and which of them policies may see, are in `run`. Times are in seconds from the start of the run, money in
€, work in epochs. An index of nothing is -1.
"""

from __future__ import annotations

# jobs: float64 (J, JOB_COLUMNS). The part of a job that policies may know.
SUBMISSION = 0  # submission time a_j
DUE = 1  # due date d_j
WEIGHT = 2  # tardiness weight ω_j [€/s]
MAX_EPOCHS = 3  # maximum epochs E_j
MIN_TAU = 4  # least seconds per epoch over all configurations
MAX_TAU = 5  # largest finite seconds per epoch over all configurations
DISTRIBUTION = 6  # index of the distribution of epochs needed
CONFIG = 7  # configuration held, or -1
NODE = 8  # node held, the first of several, or -1
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
TIMER_S = 19  # timer: time at which the job is re-evaluated; inf: no plan for it, -inf: no plan holds
MILESTONE = 20  # number of the next milestone
SWITCHES = 21  # changes of configuration or place after the first start, pauses included
SLOT = 22  # shared GPU held on the node, or -1
OLD_SLOT = 23  # shared GPU held when the round began
APPLICATION = 24  # index of the application
RESTART_S = 25  # seconds without progress after a change of place, or any change if distances do not matter
ANCHOR_EPOCHS = 26  # epochs done when the present speed began
ANCHOR_S = 27  # from when on the present speed makes progress
SLOWDOWN = 28  # true seconds per epoch / planned ones (`tau`); below 1 if the job is faster than planned
PREFERRED_NODE = 29  # node on which placement puts the job if it fits; OLD_NODE unless a policy clears it (`placement`)
PREFERRED_SLOT = 30  # shared GPU of that node, likewise
CHEAPEST = 31  # configuration whose epochs cost least in full nodes; -1: none
CHEAPEST_TAU = 32  # its seconds per epoch; inf: none
EDGES = 33  # row of `edges` with the bins of its distribution
STARTING_S = 34  # seconds without progress until it has been ready once
RESUMING_S = 35  # seconds without progress after a change on the nodes where it was last ready
LAST_NODE = 36  # first node of those on which it was last ready before the present interval, or -1
LAST_NODES = 37  # mark of these nodes (`held_nodes.mark_of`), or NO_MARK
OPPORTUNISTIC = 38  # 1 if it is opportunistic: it gets the GPUs that guaranteed jobs leave; a label for policies
TENANT = 39  # index of its tenant
TRACED_START_S = 40  # when it really started, by its trace; NaN but for policies that replay (`policy.Replaying`)
TRACED_CONFIG = 41  # configuration that it really ran on, likewise, or -1; -2 - c: c, and its GPU type is known
STATE_BYTES = 42  # size of its state; 0 where host memory has no limit
MOVING_S = 43  # seconds more that continuing takes it for each further GPU on a PCIe link
POOL_NODE = 44  # node whose host memory has room for its state while it is paused, or -1
BESIDE = 45  # mark of the jobs on its shared GPUs beside it, where limits follow with a delay (`adaptation`)
PROFILED = 46  # 1 if shares are open to it because its application was profiled; 0 without profiling
JOB_COLUMNS = 47  # then, with spread configurations, where their GPUs are, now and at the round's begin (`spread`)

NO_MARK = -1.0  # in LAST_NODES: the state is not where it was, so that the job restarts everywhere

# outcome: float64 (J, OUTCOME_COLUMNS). The hidden part, which no policy may know.
NEEDED = 0  # epochs needed X_j
FINISH_S = 1  # completion time if the job goes on as it runs; inf while it does not run
OUTCOME_COLUMNS = 2

# nodes: int64 (N, NODE_COLUMNS + 2 G), or (N, NODE_COLUMNS) if no configuration shares a GPU.
NODE_TYPE = 0  # index of the GPU type
NODE_GPUS = 1  # number of GPUs
FREE = 2  # usable GPUs not held now; a shared GPU is held. Those of a node that are busy are USABLE - FREE
OLD_FREE = 3  # GPUs not held when the round began
NEXT = 4  # the next node of the job that holds this whole one, or -1
OLD_NEXT = 5  # the same when the round began
USABLE = 6  # GPUs that can be held: all of a node that is up, none of one that is down
POOL_FREE = 7  # bytes of host memory left for the states of paused jobs; 0 where there is no limit
NODE_COLUMNS = 8  # then, if GPUs can be shared, G columns with the units used of every shared one, and G with the old

UNITS = 2**40  # units of a shared GPU: whole numbers, so that shares add up exactly

# configs: int64 (C, CONFIG_COLUMNS).
CONFIG_TYPE = 0  # index of the GPU type
CONFIG_GPUS = 1  # GPUs held on each node
CONFIG_NODES = 2  # nodes held; whole ones if more than one; of a spread configuration its GPUs
CONFIG_UNITS = 3  # units held of a shared GPU; 0 for whole GPUs
CONFIG_SIZE = 4  # units held in all
CONFIG_PRIORITY = 5  # priority of a share
CONFIG_SPREAD = 6  # 1 if its GPUs may be on any nodes
CONFIG_CONSOLIDATED = 7  # of a spread one, the configuration of as many GPUs on one node or on whole ones; -1: none
CONFIG_UNLIMITED = 8  # the configuration of the same GPUs with the highest power limit
CONFIG_COLUMNS = 9

PRIORITIES = 10  # priorities that shares may have

# sharing: float64 (SHARING_COLUMNS,). The numbers of the interference model; all 0 without one.
FASTEST = 0  # 1 if a share goes to the open GPU on which it is fastest, 0 if to the fullest
OVERHEAD = 1  # what a job loses to co-runners of lower priority, as a part of its time
FILLED = 2  # part of the time left by the highest priority that others can use, without a table
LEAST_SPEED = 3  # least speed of those below the highest priority, if their utilisations sum to 1 at most
ADAPT_S = 4  # seconds until limits follow the jobs on a GPU
PROFILE_S = 5  # time for which an application runs on whole GPUs before its jobs may share [s]; 0: none
SHARING_COLUMNS = 6

# memory: float64 (V, A, MEMORY_COLUMNS). What an application needs of a GPU whose memory moves between jobs.
NEED = 0  # at most, in a mini-batch [GiB]
LEAST = 1  # at least, to run [GiB]
ADDED = 2  # part of a mini-batch that each GiB of it in host memory adds
MEMORY_COLUMNS = 3

# capacity: int64 (V, CAPACITY_COLUMNS + index). Free capacity of the nodes of a GPU type now.
FREE_BLOCK = 0  # most free GPUs on one node
EMPTY = 1  # whole nodes that are empty: nodes of the largest size of the type
FREE_SHARE = 2  # most units free on a GPU that is shared already
LARGEST = 3  # GPUs of the largest node; never changes
SIZES = 4  # numbers of free GPUs that the index behind these columns has; 0: there is no index
FREE_GPUS = 5  # free GPUs on all nodes
CAPACITY_COLUMNS = 6  # then the index of `node_index`

# quota: int64 (T, 2 V), T tenants; no rows without quotas. The units of every GPU type that a tenant's jobs may hold at
# one time, then those that they hold.

# cells: int64 (N, CELL_COLUMNS); no rows without cells. The binding of the nodes, the last of which are hosts
# themselves.
CELL_HOST = 0  # index of the host to which the cell is bound, or -1
CELL_OLD_HOST = 1  # the same when the round began
CELL_BLOCK = 2  # first GPU of its block there
CELL_LEVEL = 3  # with `cells.tree`: row where the list of the free cells of its kind and size begins
CELL_RACK = 4  # number of its rack; of cells: of the tenant's cell of which it is a part
CELL_NODES = 5  # nodes of that
CELL_COLUMNS = 6

# network: float64 (NETWORK_COLUMNS,); no columns without a model of the network between nodes.
BACKEND = 0  # place of the backend in `synchronisation.BACKENDS`
CPU_MACHINES = 1  # CPU machines that help
CPU_KILOWATTS = 2  # power of one that does [kW]
BUSY_PER_NODE = 3  # how busy each node of a job on several nodes makes the core; 0: no limit
MOST_BUSY = 4  # how busy all nodes make it
NETWORK_COLUMNS = 5

# clock: float64 (CLOCK_COLUMNS,).
NOW = 0  # present time
BILL = 1  # energy cost of all nodes so far [€]
TARDINESS_COST = 2  # tardiness cost of all jobs so far [€]
BILL_RATE = 3  # energy cost rate of all nodes now [€/s]
REVIEW = 4  # interval of the fixed reviews; inf: none
IDLE_REVIEW = 5  # step of the clock when nothing runs and nothing is pending
LAST_BUSY = 6  # when a job last ran, or was still to come
PRICE = 7  # price of energy [€/kWh]
PUE = 8  # energy drawn by the site / energy drawn by its nodes
DECISION = 9  # interval of decision rounds [s]; 0: a round at every event
KWH = 10  # energy at the meter so far [kWh]; this column and the next ones are 0 without a series of prices
CO2_KG = 11  # what it emitted [kg]
DEMAND_EUR = 12  # demand charges in `BILL` [€]
PEAK_KW = 13  # largest mean power of an interval of this billing month so far [kW]
INTERVAL_KWH = 14  # energy of the present interval so far [kWh]
CAP_KW = 15  # cap on the power of the site now [kW]; inf: none
NEXT_CAP_S = 16  # when it changes next, if that was announced; else inf
NEXT_CAP_KW = 17  # the cap from then on [kW]; else the present one
KW = 18  # power of all nodes now, without what the PUE adds [kW]; 0 without a site
CAP_FORCED_S = 19  # seconds for which jobs were throttled by the simulator, summed over jobs
PENALTY_EUR = 20  # what penalties have cost, such as power above a soft cap, a part of the bill [€]
GPU_EUR_PER_S = 21  # price of a held GPU [€/s]
RENT_EUR = 22  # what held GPUs have cost by the hour, a part of the bill [€]
PAID_EUR = 23  # the bill, the tardiness cost [€] and the CO2 [kg] that are in rewards of an environment already
PAID_TARDINESS = 24
PAID_KG = 25
CLOCK_COLUMNS = 26

# prices: float64 (P, PRICE_COLUMNS), a row for each period of the series of prices; no rows without one.
PERIOD_START = 0  # when it begins [s]
PERIOD_PRICE = 1  # price of a kWh at the meter [€/kWh]
PERIOD_PUE = 2  # energy at the meter / energy drawn by the nodes
PERIOD_G = 3  # what a kWh at the meter emits [g CO₂]; 0 if that is not known
PERIOD_PUBLISHED = 4  # from when policies know the row [s]; until then, price, PUE and g are NaN on the board
PERIOD_NOISE = 5  # factor of its forecast
PRICE_COLUMNS = 6

# tariff: float64 (TARIFF_COLUMNS + months,); no columns without a series of prices.
DEMAND_EUR_PER_KW = 0  # demand charge of a billing month [€/kW]; 0: none
DEMAND_INTERVAL_S = 1  # length of the intervals whose mean power counts [s]
MONDAY_S = 2  # when a Monday begins, local time [s]
TARIFF_COLUMNS = 3  # then when the billing months after the first one begin [s]

# count: int64 (COUNT_COLUMNS,).
SUBMITTED = 0  # jobs submitted so far: the next one to come
ACTIVE = 1  # jobs submitted and not completed
DONE = 2  # jobs completed
LOGGED = 3  # rows of the log in use
ROUND = 4  # decision rounds so far
MILESTONES = 5  # milestones per job; 0: none
ASKED = 6  # jobs of this round that have been asked
TO_ASK = 7  # jobs that this round asks
IDLE = 8  # events in a row at which nothing ran and nothing was to come
LOGGING = 9  # 1 if intervals are logged
DUE_DATE_TIMERS = 10  # 1 if every decision sets the job's timer (`due_dates`)
CONSOLIDATES = 11  # 1 if every decision may move a job from its previous node to one in use (`should_consolidate`)
PREEMPTION = 12  # 1 if a round begins from an empty cluster
ORDER = 13  # number of the order in which a round asks its jobs
DISTANCES = 14  # 1 if the costs of switching depend on the distance (`switching`)
LIMITED_POOL = 15  # 1 if the host memory for the states of paused jobs has a limit
LINK_GPUS = 16  # GPUs of a node that share a PCIe link
PUBLISHED = 17  # periods whose prices are published
FORCED = 18  # jobs that the simulator throttles since the last round
COUNT_COLUMNS = 19

# site: float64 (SITE_COLUMNS,); (0,) without a cap on its power.
SOFT_EUR = 0  # what a kWh above the cap costs in addition [€/kWh]; inf: the cap is hard
SITE_COLUMNS = 1

# caps: float64 (P, CAP_COLUMNS), the periods of the cap, hidden until they are announced; no rows without one.
CAP_START_S = 0  # start of the period
CAP_PERIOD_KW = 1  # the cap in it [kW]
CAP_NOTICED_S = 2  # when it is announced
CAP_COLUMNS = 3

# log: float64 (L, LOG_COLUMNS), one row per node and interval in which a job held one configuration in one place.
LOG_JOB = 0
LOG_NODE = 1
LOG_CONFIG = 2
LOG_START = 3
LOG_READY = 4
LOG_END = 5
LOG_EPOCHS = 6  # epochs done in the interval, the same in the rows of all its nodes
LOG_SLOT = 7  # the shared GPU of the node, or -1
LOG_COLUMNS = 8
LOG_HOST = 8  # with cells one column more: the host to which the node is bound
LOG_GPUS = 9  # with spread configurations two columns more: that one, and the GPUs held on the node
