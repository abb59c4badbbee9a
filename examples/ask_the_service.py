"""Ask a service for the schedule of jobs: once with one request, and then at every event of simulated clusters.

Start one with `gpusched serve --policies edf,sts-x`, and run `python examples/ask_the_service.py` in another terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.request

from gpusched_baselines import make_policy
from gpusched_env import InputError, load_scenario, make_instance, simulate
from gpusched_operations.service.client import ServiceError, ServicePolicy

REQUEST = {
    "policy": "sts-x",
    "now_s": 7200.0,
    "cluster": {"gpu_types": ["V100"], "nodes": [{"name": "gpu01", "gpu_type": "V100", "gpus": 4}]},
    "applications": {"resnet50-imagenet-bs64": {"distribution": {"history_epochs": [18, 22, 25, 31, 40]}}},
    "jobs": [
        {"id": "4711", "application": "resnet50-imagenet-bs64", "submission_s": 0.0, "due_s": 4e5, "epochs_done": 3.0,
         "tardiness_weight_eur_per_s": 0.002,
         "running": {"configuration": "V100x2", "nodes": ["gpu01"], "since_s": 60.0}},
        {"id": "4712", "application": "resnet50-imagenet-bs64", "submission_s": 7200.0, "due_s": 3e5,
         "tardiness_weight_eur_per_s": 0.002},
    ],
}  # fmt: skip


def ask(url: str) -> None:
    """Send one request with only the standard library, and print what every job gets."""
    headers = {"Content-Type": "application/json"}
    if "GPUSCHED_API_KEY" in os.environ:  # the service has keys
        headers["Authorization"] = f"Bearer {os.environ['GPUSCHED_API_KEY']}"
    request = urllib.request.Request(  # noqa: S310 - the user's own address
        f"{url}/v1/decide", json.dumps(REQUEST).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        answer = json.load(response)
    for job in answer["jobs"]:
        print(f"{job['id']}: {job['action']:7}{job['configuration'] or 'nothing'} on {job.get('nodes', [])}")
    print(f"ask again in {answer['ask_again_in_s']} s at the latest; expected {answer['expected_cost_eur']:.2f} €\n")


def main() -> None:
    """Ask once, then run policies with the service and without it: the schedules are the same to the last bit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the service is")
    parser.add_argument("--scenario", default="tiny", help="name of a built-in scenario, or a .toml file")
    args = parser.parse_args()
    ask(args.url)
    instance = make_instance(load_scenario(args.scenario), seed=0)
    for name in ("edf", "sts-x"):
        asked = simulate(instance, ServicePolicy(args.url, name, instance))
        alone = simulate(instance, make_policy(name))
        same = (asked.completion_s == alone.completion_s).all() and asked.energy_eur == alone.energy_eur
        print(f"{name:6}{asked.total_eur:8.2f} € in {asked.rounds} decisions, as without the service: {same}")


if __name__ == "__main__":
    try:
        main()
    except (InputError, ServiceError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
