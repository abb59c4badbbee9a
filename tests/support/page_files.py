"""The files that the pages suppose their reader has, small, and the commands of pages made as small."""

import json
import re
import shutil
from pathlib import Path

from commands import succeeds
from gpusched_agents.files.storage import find_agent
from gpusched_baselines.tuned import save_tuned
from gpusched_env import make_instance, save_instance
from gpusched_env.workload import load_scenario
from gpusched_operations.service.openapi import EXAMPLE
from page_commands import BEFORE, ROOT, PageCommand

JOBS = "submission_s,created,duration_s,gpus\n0,0,3600,1\n600,600,7200,2\n900,900,1800,4\n"
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,ua,va,4,16,1,COMPLETED,2020-04-02 00:00:00,2020-04-02 00:01:00,2020-04-02 00:11:00,600,60\n"
    "2,ub,vb,1,1,1,FAILED,2020-04-01 00:00:40,2020-04-01 00:00:40,2020-04-01 00:00:50,10,0\n"
)
SACCT = (
    "JobID|Submit|Start|End|ElapsedRaw|AllocTRES|State|User|Account\n"
    "1|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00|3600|cpu=4,gres/gpu=2|COMPLETED|ua|va\n"
    "2|2026-01-01T00:10:00|2026-01-01T00:20:00|2026-01-01T00:50:00|1800|cpu=4,gres/gpu=1|COMPLETED|ub|va\n"
)
LIVE = ROOT / "tests/operations/live/data"


def write_files(folder: Path) -> None:
    (folder / "jobs.csv").write_text(JOBS, encoding="utf-8")
    (folder / "cluster_log.csv").write_text(HELIOS, encoding="utf-8")
    (folder / "jobs.txt").write_text(SACCT, encoding="utf-8")
    for name in ("scenario.toml", "mine.toml"):
        (folder / name).write_text('base = "tiny"\n', encoding="utf-8")
    page = (ROOT / "docs/write-a-policy.md").read_text(encoding="utf-8")
    rule = next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Fastest" in code)
    (folder / "my_rule.py").write_text(rule.partition("\nprint(")[0] + "\n", encoding="utf-8")
    (folder / "request.json").write_text(json.dumps(EXAMPLE), encoding="utf-8")
    for name in ("nodes.txt", "squeue.json", "kueue.yaml"):
        shown = {"squeue.json": "jobs.json", "kueue.yaml": "objects.yaml"}.get(name, name)
        shutil.copy(LIVE / name, folder / shown)
    save_tuned(folder / "results/tuned.json", {"patience": 0.1})
    for name in ("mine", "slack", "es", "mixture"):
        shutil.copytree(find_agent("agent:default"), folder / "runs" / name / "agent")
    save_instance(make_instance(load_scenario("tiny"), 0), folder / "mine.json")


def small(command: PageCommand) -> list[str]:
    """Return the arguments of a command, with options after them that make it run for a moment."""
    words = command.words
    name, fixed = words[0], {"--instance", "mine.json"} & set(words)
    if name in ("compare", "evaluate"):
        words += ["--workers", "1", *_one_seed(words)]
    if name in ("compare", "evaluate", "simulate", "limits") and not fixed:
        words += ["--jobs", "6"]
    if name == "limits":
        words += ["--seeds", "0"]
    if name == "forecast":
        words += ["--samples", "4"]
    return words


def _one_seed(words: list[str]) -> list[str]:
    asked = words[words.index("--seeds") + 1] if "--seeds" in words else "30000" if "--track" in words else "0"
    return ["--seeds", re.match(r"\d+", asked)[0]]


def run(command: PageCommand, folder: Path) -> None:
    """Run a command of a page in a folder, with what the page has run before it."""
    write_files(folder)
    before, _, into = BEFORE.get(command.text, "").partition(" > ")
    if before:
        printed = succeeds(*before.split()).stdout
        if into:
            (folder / into).write_text(printed, encoding="utf-8")
    done = succeeds(*small(command))
    assert not command.into or done.stdout.startswith("name = ")
