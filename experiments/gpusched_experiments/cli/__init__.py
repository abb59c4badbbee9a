"""The command line: `gpusched compare`, `simulate`, `audit`, `scenarios`, `policies`."""
