"""A scenario file with a cluster, applications and past runs of one's own, and the tables beside it."""

from pathlib import Path

SCENARIO = """
applications = "apps.csv"

[[gpu_types]]
name = "B200"
memory_gib = 180
gpus_per_node = 4
gpu_power_w = 900
node_base_power_w = 1000
idle_gpu_power_w = 100

[[gpu_types]]
name = "rented"
memory_gib = 24
node_eur_per_h = [0.5, 0.9]

[[cluster.pools]]
gpu_type = "B200"
nodes = 1

[[cluster.pools]]
gpu_type = "rented"
nodes = 1

[[cluster.pools]]
gpu_type = "rented"
nodes = 2
gpus_per_node = 1

[jobs]
count = 12

[arrivals]
kind = "exponential"
mean_gap_s = 60

[due_dates]
slack = 0.4

[epochs]
runs = "runs.csv"
by_application = true
"""
APPLICATIONS = """application,gpu_type,gpus,seconds,max_epochs,memory_gib,restart_s
small,B200,1,1000,10,10,40
small,B200,2,600,,,
small,rented,1,3000,,,
small,rented,2,1700,,,
large,B200,4,900,20,100,
"""
RUNS = "application,epochs,max_epochs\nsmall,5,10\nsmall,10,10\nlarge,1,20\n"


def write_own_cluster(folder: Path) -> Path:
    """Write the scenario and its tables to `folder`; give the path of the scenario."""
    for name, text in (("apps.csv", APPLICATIONS), ("runs.csv", RUNS), ("own.toml", SCENARIO)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "own.toml"
