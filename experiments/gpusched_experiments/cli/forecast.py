"""`gpusched forecast`."""

import json
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.rendering.text import duration_text
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.serve import KEY_VARIABLE
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import COUNT, MONEY, RATIO, SHARE, Column, Table
from gpusched_experiments.service.client import post
from gpusched_experiments.service.decision import Decider, PolicyCatalogue
from gpusched_experiments.service.forecasting import Forecaster

REQUEST = "request.json"
AS_IT_IS = "as it is"
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
    samples: Annotated[int | None, typer.Option("--samples", help="Number of roll-outs; by default 100.")] = None,
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
        float | None, typer.Option("--horizon", help="Hours after which roll-outs stop; by default with the last job.")
    ] = None,
    longest: Annotated[
        float | None, typer.Option("--longest", help="Seconds after which no other roll-out begins.")
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
    told = {"samples": samples, "seed": seed, "longest_s": longest}
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
    """Read the request.

    Raises:
        InputError: There is no such file, or it holds no JSON object.
    """
    path = Path(file)
    path = path / REQUEST if path.is_dir() else path
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError("FILE", str(path), f"a request as JSON, or a folder with {REQUEST} ({error})") from None
    if not isinstance(found, dict):
        raise InputError("FILE", str(path), "a JSON object")
    return found


def _change(text: str, request: dict[str, Any]) -> dict[str, Any]:
    """Read a what-if.

    Raises:
        InputError: It is not of that form.
    """
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
        told: dict[str, Any] = json.loads(post(f"{url.rstrip('/')}/v1/forecast", json.dumps(request).encode()))
        return told
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

    def after(times: Sequence[float | None] | None, i: int) -> str:
        return "" if times is None else "after the horizon" if times[i] is None else _duration(times[i] - now_s)

    jobs: list[Column[dict[str, Any]]] = [Column("job", "job", lambda job: str(job["id"]))]
    jobs += [Column("start", f"starts, {shown[middle]}", lambda job: after(job.get("start_s"), middle))]
    jobs += [
        Column(f"end_{i}", f"ends, {text}", lambda job, i=i: after(job.get("end_s"), i)) for i, text in enumerate(shown)
    ]
    jobs += [
        Column("late", "late", lambda job: job.get("late"), SHARE),
        Column("energy", "energy €", lambda job: job.get("expected_energy_eur"), MONEY),
        Column("tardiness", "tardiness €", lambda job: job.get("expected_tardiness_eur"), MONEY),
        Column("why", "", lambda job: job.get("why", "")),
    ]
    if all("why" not in job for job in answer["jobs"]):
        jobs.pop()
    made = answer["samples"]
    come = f"up to {answer['coming']} jobs come" if answer["coming"] else "no jobs come"
    notes = [f"Times from now on; {made} roll-outs of {answer['policy']}, {come}. Energy and tardiness: expected."]
    print_table(output(), Table.of("Jobs", jobs, answer["jobs"], tuple(notes)), named=True)
    cases = [{"name": AS_IT_IS} | answer, *answer["what_if"]]
    ends = [
        Column(f"end_{i}", f"all end, {text}", lambda case, i=i: after((case["cluster"] or {}).get("end_s"), i))
        for i, text in enumerate(shown)
    ]
    columns: tuple[Column[dict[str, Any]], ...] = (
        Column("case", "case", lambda case: str(case["name"])),
        Column("policy", "policy", lambda case: str(case["policy"])),
        Column("samples", "roll-outs", lambda case: case["samples"], COUNT),
        *ends,
        *(
            Column(name, title, lambda case, name=name: (case["cluster"] or {}).get(f"expected_{name}"), form)
            for name, title, form in (
                ("late_jobs", "late jobs", RATIO),
                ("energy_eur", "energy €", MONEY),
                ("tardiness_eur", "tardiness €", MONEY),
                ("total_eur", "total €", MONEY),
            )
        ),
        Column("more", "total € more", lambda case: _more(case.get("difference"))),
    )
    print_table(output(), Table.of("All jobs", columns, cases), named=True)


def _more(difference: dict[str, Any] | None) -> str:
    if difference is None:
        return ""
    low, high = difference["total_eur"][0], difference["total_eur"][-1]
    return f"{difference['expected_total_eur']:+,.2f} [{low:+,.2f}, {high:+,.2f}]"


def _duration(seconds: float) -> str:
    return duration_text(seconds) if seconds >= 0.0 else f"{duration_text(-seconds)} ago"
