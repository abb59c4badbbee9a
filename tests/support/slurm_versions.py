"""What `squeue --json` of Slurm 22.05 writes, in the shape of later versions."""

import json
from typing import Any

VERSIONS = ("22.05", "23.02", "23.11", "24.11")
TIMES = ("submit_time", "start_time", "end_time")
NUMBERS = ("array_job_id", "array_max_tasks", "array_task_id", "het_job_id", "het_job_offset", "node_count", "priority")
MORE_NUMBERS = ("sockets_per_node", "tasks", "time_limit")


def in_version(squeue_json: str, version: str) -> str:
    """Return the text as a version writes it: numbers as objects, states as lists, GPUs as gres/gpu."""
    document = json.loads(squeue_json)
    if version != "22.05":
        document["jobs"] = [_job(job, version) for job in document["jobs"]]
    return json.dumps(document)


def _job(job: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a record as data_parser 0.0.39 (23.02) or 0.0.40 and later (23.11, 24.05 and on) writes it."""
    made = dict(job)
    for name in (*NUMBERS, *MORE_NUMBERS, *(TIMES if version == "24.11" else ())):
        infinite = name == "time_limit" and job[name] is None
        made[name] = {"set": job[name] is not None, "infinite": infinite, "number": job[name] or 0}
    made["shared"] = [] if job["shared"] is None else [job["shared"]]
    made["exclusive"] = ["true"] if job["shared"] == "none" else []
    made["hold"] = job["priority"] == 0
    if version != "23.02":
        made["job_state"] = [job["job_state"]]
        for name in ("tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"):
            made[name] = job[name].replace("gres:", "gres/")
    return made
