"""Where the public data come from that some experiments need and the project does not hold."""

from pathlib import Path

SOURCES = {
    "gpuspb": "made with github.com/ai-sprint-eu-project/GPUScheduler at 0f0ccf6 (Apache-2.0), a table reference/KIND-"
    "NODES-SEED.csv for each instance and the program's answers in reference/results.csv",
    "hived": "cases and answers of the tests and the program of github.com/microsoft/hivedscheduler at 66f26ac (MIT)",
    "gavel": "scheduler/*_throughputs.json of github.com/stanford-futuredata/gavel at c4fa400 (MIT)",
    "gavel_policies": "answers of scheduler/policies of github.com/stanford-futuredata/gavel at c4fa400 (MIT)",
    "gaia_reference": "github.com/umassos/GAIA at 62a5efc (MIT; its trace CC BY 4.0), with what its program answers",
    "muri": "simulator/trace-data/trace*.csv of github.com/pkusys/Muri at 4e69a78 (Apache-2.0)",
    "muri_antman": "what simulator/run_sim.py of github.com/pkusys/Muri at 4e69a78 (Apache-2.0) answers; trace3.csv",
    "orion": "benchmarking/model_kernels of github.com/eth-easl/orion at aded65d (MIT), with the ending .csv",
    "philly": "pollux/pollux_simulator/traces/philly.csv of github.com/pkusys/ElasticFlow at 04a0109 (data CC BY 4.0)",
}
"""By folder of `../shared/data`: what it holds, from which address, commit and licence."""


def where_from(path: Path) -> str:
    """Return where the data of a file or folder come from, as a phrase in brackets; empty if it is not known."""
    name = next((part for part in reversed(path.parts) if part in SOURCES), None)
    return "" if name is None else f" (source: {SOURCES[name]})"
