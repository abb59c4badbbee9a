"""`gpusched forecast`."""

import json
import os
import re
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_env.rendering.text import duration_text
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import COUNT, MONEY, RATIO, SHARE, Column, Table
from gpusched_operations.cli.serve import KEY_VARIABLE
from gpusched_operations.service.client import asked
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.forecasting import Forecaster

REQUEST = "request.json"
AS_IT_IS = "as it is"
OF_ANSWER = ("now_s", "quantiles", "coming", "samples", "policy", "what_if", "cluster")
_NODES = re.compile(r"nodes\+(\d+):([^,:=]+?)(?:x(\d+))?$")
_FORM = "parts with commas: nodes+2:A100 (A100x4: with 4 GPUs each), policy=edf, cap=40 (kW)"


def forecast_command(
    *,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help=f"A request of the decision service, or a folder with {REQUEST}.")
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", "-p", help="The policy; by default the request's.", autocompletion=completion.a_policy
        ),
    ] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Number of rollouts; by default 100.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of what is drawn; by default 0.")] = None,
    arrivals: Annotated[
        float | None,
        typer.Option("--arrivals", metavar="N", help="Jobs to come in an hour, like those there; by default none."),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if", metavar="CHANGE", help=f"A further forecast with the same draws; {_FORM}. Repeatable."
        ),
    ] = None,
    horizon: Annotated[
        float | None, typer.Option("--horizon", help="Hours after which rollouts stop; by default with the last job.")
    ] = None,
    longest: Annotated[
        float | None, typer.Option("--longest", help="Seconds after which no other rollout begins.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="A service that is asked; by default this process decides.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="File for all of it as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON and no table.")] = False,
) -> None:
    """Forecast when jobs start and end, how likely they are late, and what is still to pay.

    The policy is simulated many times from the present state, in which every job needs what is drawn from its
    distribution given the epochs done.

    For example:
    - **gpusched forecast request.json --samples 200**

    - **gpusched forecast request.json --arrivals 6 --what-if nodes+2:A100 --what-if policy=edf,cap=40**

    - **gpusched forecast snapshot --url http://127.0.0.1:8000**
    """
    request = _request(file)
    given = dict(request.get("forecast") or {})
    told: dict[str, Any] = {"samples": samples, "seed": seed, "longest_s": longest}
    told |= {"horizon_s": None if horizon is None else 3600.0 * horizon}
    told |= {"arrivals": None if arrivals is None else {"per_hour": arrivals}}
    told |= {"what_if": None if not what_if else [_change(text, request) for text in what_if]}
    given |= {name: value for name, value in told.items() if value is not None}
    request |= {"forecast": given} | ({} if policy is None else {"policy": policy})
    answer = _asked(request, url)
    text = json.dumps(answer, indent=1, ensure_ascii=False)
    if out is not None:
        write_atomically(Path(out), f"{text}\n")
    if as_json:
        typer.echo(text)
    else:
        _print(answer)
    if out is not None:
        typer.echo(f"wrote {out}", err=as_json)


def _request(file: str) -> dict[str, Any]:
    path = Path(file)
    path = path / REQUEST if path.is_dir() else path
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError("FILE", str(path), f"a request as JSON, or a folder with {REQUEST} ({error})") from None
    if not isinstance(found, dict):
        raise InputError("FILE", str(path), "a JSON object")
    return found


def _change(text: str, request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": text, "nodes_more": []}
    for part in text.split(","):
        nodes = _NODES.match(part)
        name, _, value = part.partition("=")
        if nodes is not None:
            more = {"gpu_type": nodes[2], "count": int(nodes[1])}
            found["nodes_more"].append(more | ({} if nodes[3] is None else {"gpus": int(nodes[3])}))
        elif name == "policy" and value:
            found["policy"] = value
        elif name == "cap" and re.fullmatch(r"\d+(\.\d+)?", value):
            found["site"] = dict(request.get("site") or {}) | {"cap_kw": float(value)}
        else:
            raise InputError("--what-if", text, _FORM)
    return found


def _asked(request: dict[str, Any], url: str | None) -> dict[str, Any]:
    """Ask the service, or forecast here, where only the key of the environment reads what a policy remembers."""
    if url is not None:
        return asked(f"{url.rstrip('/')}/v1/forecast", request, OF_ANSWER, ("id",))
    key = os.environ.get(KEY_VARIABLE)
    if key is None and request.get("memory") is not None:
        typer.echo(f"note: without the memory of the request, which needs {KEY_VARIABLE}", err=True)
        request = request | {"memory": None}
    what_if = request["forecast"].get("what_if")
    others = [each.get("policy") for each in what_if or () if isinstance(each, dict)]
    names = [name for name in (request.get("policy"), *others) if isinstance(name, str)]
    catalogue = PolicyCatalogue.of(",".join(dict.fromkeys(names)) or "usual")
    decider = Decider(catalogue, secrets.token_bytes(32) if key is None else os.fsencode(key))
    answer: dict[str, Any] = json.loads(Forecaster(decider)(json.dumps(request).encode()))
    return answer


def _print(answer: dict[str, Any]) -> None:
    now_s, shown = answer["now_s"], [f"{100.0 * q:g} %" for q in answer["quantiles"]]
    middle = min(range(len(shown)), key=lambda i: abs(answer["quantiles"][i] - 0.5))
    jobs: list[Column[dict[str, Any]]] = [
        Column("job", "job", _value("id")),
        Column("start", f"starts, {shown[middle]}", partial(_after, now_s, "start_s", middle)),
        *(Column(f"end_{i}", f"ends, {each}", partial(_after, now_s, "end_s", i)) for i, each in enumerate(shown)),
        Column("late", "late", _value("late"), SHARE),
        Column("energy", "energy €", _value("expected_energy_eur"), MONEY),
        Column("tardiness", "tardiness €", _value("expected_tardiness_eur"), MONEY),
        Column("why", "", _value("why")),
    ]
    if all("why" not in job for job in answer["jobs"]):
        jobs.pop()
    come = f"up to {answer['coming']} jobs come" if answer["coming"] else "no jobs come"
    made = f"{answer['samples']} rollouts of {answer['policy']}, {come}"
    note = f"Times from now on; {made}. Energy and tardiness: expected."
    print_table(output(), Table.of("Jobs", jobs, answer["jobs"], (note,)), named=True)
    rows = [each | (each["cluster"] or {}) for each in ({"name": AS_IT_IS} | answer, *answer["what_if"])]
    columns: list[Column[dict[str, Any]]] = [
        Column("case", "case", _value("name")),
        Column("policy", "policy", _value("policy")),
        Column("samples", "rollouts", _value("samples"), COUNT),
        *(Column(f"end_{i}", f"all end, {each}", partial(_after, now_s, "end_s", i)) for i, each in enumerate(shown)),
        Column("late_jobs", "late jobs", _value("expected_late_jobs"), RATIO),
        Column("energy_eur", "energy €", _value("expected_energy_eur"), MONEY),
        Column("tardiness_eur", "tardiness €", _value("expected_tardiness_eur"), MONEY),
        Column("total_eur", "total €", _value("expected_total_eur"), MONEY),
        Column("more", "total € more", _more),
    ]
    print_table(output(), Table.of("All jobs", columns, rows), named=True)


def _value(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda row: row.get(name)


def _after(now_s: float, name: str, i: int, row: dict[str, Any]) -> str:
    if name not in row:
        return ""
    return "after the horizon" if row[name][i] is None else _duration(row[name][i] - now_s)


def _more(row: dict[str, Any]) -> str:
    difference = row.get("difference")
    if difference is None:
        return ""
    low, high = difference["total_eur"][0], difference["total_eur"][-1]
    return f"{difference['expected_total_eur']:+,.2f} [{low:+,.2f}, {high:+,.2f}]"


def _duration(seconds: float) -> str:
    return duration_text(seconds) if seconds >= 0.0 else f"{duration_text(-seconds)} ago"
