"""`gpusched serve`."""

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.child_processes import usable_cores
from gpusched_env.errors import InputError, MissingExtraError
from gpusched_operations.cli.live_options import LogFormatOption, LogLevelOption

SERVICE = "gpusched_operations.service"
KEY_VARIABLE = "GPUSCHED_SERVE_KEY"
LEAST_KEY_BYTES = 16


def serve_command(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes a free one.")] = 8000,
    unix: Annotated[
        Path | None, typer.Option("--unix", metavar="PATH", help="Listen at a Unix socket, not at a port.")
    ] = None,
    api_keys: Annotated[
        Path | None, typer.Option("--api-keys", metavar="FILE", help="Keys that may ask: lines of a name and a key.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes that decide; by default one a core.")
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "-p",
            help="Policies that may be asked: names with commas (FILE.py:Class too, whose code runs), usual, or all.",
        ),
    ] = "usual",
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME=DIR", help="An agent of your own, as agent:NAME; may be repeated."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Longest time of a decision [s].")] = 10.0,
    receive_timeout: Annotated[
        float, typer.Option("--receive-timeout", help="Longest time for a request to come, and its answer to go [s].")
    ] = 30.0,
    max_bytes: Annotated[int, typer.Option("--max-bytes", help="Largest request [bytes].")] = 16 * 2**20,
    max_jobs: Annotated[int, typer.Option("--max-jobs", help="Most jobs of a request.")] = 4_000,
    max_nodes: Annotated[int, typer.Option("--max-nodes", help="Most nodes of a request.")] = 4_000,
    max_waiting: Annotated[int, typer.Option("--max-waiting", help="Requests that may wait for a worker.")] = 64,
    max_connections: Annotated[int, typer.Option("--max-connections", help="Most open connections.")] = 256,
    compile_only: Annotated[
        bool, typer.Option("--compile-only", help="Compile what these policies need, keep it on the disk, and end.")
    ] = False,
    log_level: LogLevelOption = "warning",
    log_format: LogFormatOption = "text",
) -> None:
    """Answer over HTTP who should run where on what, for a job manager that asks at every event.

    Example: **gpusched serve --port 8000**, then **curl http://127.0.0.1:8000/docs**. It starts and stops no job
    itself. With GPUSCHED_API_KEY, or --api-keys, clients must send a key; it has no TLS: see the page on the service.
    """
    try:
        import_module("fastapi"), import_module("uvicorn"), import_module("prometheus_client")
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "fastapi", "serve", "decisions over HTTP") from error
    fields, decision, access, listening, logs, server = (
        import_module(f"{SERVICE}.{name}") for name in ("fields", "decision", "access", "listening", "logs", "server")
    )
    limits = fields.RequestLimits(
        max_bytes, max_jobs, max_nodes, timeout, max_waiting, receive_timeout, connections=max_connections
    )
    if workers is not None and workers < 1:
        raise InputError("--workers", workers, "a whole number >= 1")
    catalogue = decision.PolicyCatalogue.of(policies, _agents(agent or []))
    if compile_only:
        import_module(f"{SERVICE}.pool").compile_service(catalogue, limits)
        return
    key, keys = _key(), access.ApiKeys.load(api_keys)
    with logs.logging_to_stderr(log_level, log_format):
        bound = listening.bound_to_port(host, port) if unix is None else listening.bound_to_path(unix)
        server.serve(bound, workers or usable_cores(), catalogue, limits, key, typer.echo, keys)


def _key() -> bytes | None:
    """Return the key of the environment, which must not be so short that it can be guessed; None if there is none."""
    text = os.environ.get(KEY_VARIABLE)
    key = None if text is None else os.fsencode(text)
    if key is not None and len(key) < LEAST_KEY_BYTES:
        raise InputError(KEY_VARIABLE, f"{len(key)} bytes", f"at least {LEAST_KEY_BYTES} bytes, or no such variable")
    return key


def _agents(given: list[str]) -> dict[str, str]:
    agents: dict[str, str] = {}
    for text in given:
        name, _, folder = text.partition("=")
        if not name or not folder or name in agents:
            raise InputError("--agent", text, "NAME=DIR, each name once")
        agents[name] = folder
    return agents
