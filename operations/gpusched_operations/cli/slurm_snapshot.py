"""`gpusched slurm snapshot`."""

import json
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpusched_baselines.registry import operators_policy_names
from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.files import new_folder
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.provenance import provenance
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import Table
from gpusched_operations.cli.live_options import DEFAULT_POLICY
from gpusched_operations.live.comment import seconds_of_due
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.kai_state import kai_cluster
from gpusched_operations.live.kubernetes_objects import objects_of
from gpusched_operations.live.kueue_state import kueue_cluster
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.live.slurm_state import cluster_of, read_cluster
from gpusched_operations.live.snapshot import Snapshot, take_snapshot
from gpusched_operations.live.snapshot_page import (
    defaults_table,
    jobs_table,
    left_out_table,
    nodes_left_out_table,
    policies_table,
    sentences,
    snapshot_report,
)
from gpusched_operations.live.state import LiveCluster
from gpusched_operations.service.decision import Decider, PolicyCatalogue

USUAL = ",".join(("edf", *operators_policy_names(), "sts"))
FILES = ("request.json", "instance.json", "index.html")


def slurm_snapshot_command(
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the page and the files.")],
    squeue: Annotated[
        str | None,
        typer.Option("--squeue", metavar="FILE", help="What squeue --all --json wrote; by default it is run."),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option("--nodes", metavar="FILE", help="What scontrol show nodes --details wrote; by default it is run."),
    ] = None,
    kueue: Annotated[
        list[str] | None,
        typer.Option("--kueue", metavar="FILE", help="Objects of Kueue and nodes, YAML or JSON. Repeatable."),
    ] = None,
    kai: Annotated[
        str | None, typer.Option("--kai", metavar="FILE", help="A snapshot that KAI-Scheduler's plugin wrote.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="When files were read, as 2026-11-26T08:00; default: their own time."
        ),
    ] = None,
    rules: Annotated[
        str | None, typer.Option("--rules", metavar="FILE", help="What jobs are, and prices, as TOML.")
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            "-p",
            help=f"Policies with commas; {USUAL.replace(',', ', ')} and {DEFAULT_POLICY}.",
            autocompletion=completion.policies,
        ),
    ] = None,
    partition: Annotated[str | None, typer.Option("--partition", help="Only this partition; default: all.")] = None,
    forecast: Annotated[
        int, typer.Option("--forecast", metavar="N", help="Rollouts for how long jobs wait; 0: none.")
    ] = 50,
) -> None:
    """Show what runs and waits in a Slurm cluster, and what policies would do now. Nothing is changed.

    It runs **squeue --all --json** and **scontrol show nodes --details**, which every user may, or reads files of
    them; or objects of Kubernetes. The folder gets a page, the request as the decision service takes it, and an
    instance of what is left.

    For example:
    - **gpusched slurm snapshot --out now --partition gpu**

    - **gpusched slurm snapshot --out now --squeue jobs.json --nodes nodes.txt --rules jobs.toml**

    - **gpusched slurm snapshot --out now --kueue workloads.yaml --kueue nodes.yaml**

    - **gpusched forecast now** and **gpusched simulate --policy sts --instance now/instance.json**
    """
    if forecast < 0:
        raise InputError("--forecast", forecast, "a whole number >= 0")
    jobs = JobRules.load(None if rules is None else Path(rules))
    policies = f"{USUAL},{jobs.default_policy}" if policies is None else policies
    decider = Decider(PolicyCatalogue.of(policies), secrets.token_bytes(32))
    cluster = _cluster(squeue, nodes, kueue or [], kai, at)
    taken = take_snapshot(cluster, jobs, decider.policies.names, decider, partition=partition, samples=forecast)
    with new_folder(out, ours=FILES) as folder:
        for name, text in _files(taken).items():
            (folder / name).write_text(text, encoding="utf-8")
    console = output()
    for sentence in sentences(taken):
        typer.echo(sentence)
    for table in (
        policies_table(taken),
        jobs_table(taken),
        left_out_table(taken),
        nodes_left_out_table(taken),
        defaults_table(taken),
    ):
        if table.rows:
            print_table(console, _main(table), title=table.title, named=True)
    for name in FILES:
        if (Path(out) / name).exists():
            typer.echo(f"wrote {Path(out) / name}")


def _main(table: Table) -> Table:
    kept = [i for i, column in enumerate(table.columns) if column.main]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows)


def _files(taken: Snapshot) -> dict[str, str]:
    """Return the texts of the files, by name; without what pages need there is none, which is said."""
    # Only here: what pages need is not needed by the other commands.
    from gpusched_operations.html_report import report_html  # noqa: PLC0415

    origin = provenance(manager=taken.cluster.manager, read_s=taken.cluster.read_s)
    texts = {}
    if taken.request.fields["cluster"]["nodes"]:
        texts["request.json"] = json.dumps(taken.request.fields, indent=1, ensure_ascii=False) + "\n"
    if taken.instance is not None:
        texts["instance.json"] = instance_json(taken.instance)
    try:
        texts["index.html"] = report_html(snapshot_report(taken, origin))
    except MissingExtraError as missing:
        typer.echo(f"note: no index.html, since {missing}", err=True)
    return texts


def _cluster(squeue: str | None, nodes: str | None, kueue: list[str], kai: str | None, at: str | None) -> LiveCluster:
    """Read the cluster from the one source that is given; by default from Slurm."""
    given = {"--squeue": squeue, "--kueue": kueue, "--kai": kai}
    named = [name for name, value in given.items() if value]
    if len(named) > 1 or (nodes is not None and squeue is None):
        raise InputError(" and ".join(named) or "--nodes", "...", "one of --squeue with --nodes, --kueue, or --kai")
    files = [path for path in (squeue, *kueue, kai) if path]
    if not files:
        if at is not None:
            raise InputError("--at", at, "nothing without files: the cluster is read now")
        return read_cluster(SlurmControl(), time.time())
    texts = [_bytes(path, named[0]) for path in files]
    read_s = Path(files[0]).stat().st_mtime if at is None else seconds_of_due(at.removeprefix("+"), 0.0, 1.0, "--at")
    if kai is not None:
        return kai_cluster(texts[0], read_s)
    if kueue:
        objects = [each for text in texts for each in objects_of(_decoded(text, "--kueue"), "--kueue")]
        return kueue_cluster(objects, read_s)
    if nodes is None:
        raise InputError("--nodes", None, "a file of what scontrol show nodes wrote, beside --squeue")
    return cluster_of(_decoded(texts[0], "--squeue"), _decoded(_bytes(nodes, "--nodes"), "--nodes"), read_s)


def _bytes(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(option, path, f"a file that can be read ({error.strerror})") from None


def _decoded(data: bytes, option: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(option, "...", f"a text in UTF-8 ({error})") from None
