"""The commands of who runs a cluster: pages, forecasts, the decision service, Slurm."""

COMMANDS = {
    name: f"gpusched_operations.cli.{module}"
    for name, module in {
        "report": "report:report_command",
        "serve": "serve:serve_command",
        "forecast": "forecast:forecast_command",
        "slurm": "slurm:slurm_app",
        "progress": "report_progress:progress_command",
        "warm-up": "warm_up:warm_up_command",
    }.items()
}
"""By command, where its function is, or its group of commands: the entry point of the command line."""
