"""The notebook runs from top to bottom, here with few decisions; its file has the outputs with all decisions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbclient")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text_of(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


FEW = {
    "STEPS = 400_000": "STEPS = 200",
    "range(20_000, 20_003)": "range(20_000, 20_001)",
    "range(30_000, 30_010)": "range(30_000, 30_002)",
    "agent=EsConfig()": "agent=EsConfig(pairs=1, workloads=1, most_jobs=15)",
}
REFERENCES = ["edf", "sts", "sts-x"]


def pictures(notebook: Any) -> list[str]:
    found = [output.get("data", {}).get("image/png") for cell in code_cells(notebook) for output in cell.outputs]
    return [picture for picture in found if picture]


def test_the_stored_outputs_show_an_agent_that_beats_the_reference_policies_and_two_small_pictures():
    (path,) = NOTEBOOKS
    notebook = nbformat.read(path, as_version=4)
    assert all(cell.execution_count and cell.outputs for cell in code_cells(notebook)[1:])
    assert [len(picture) < 60_000 for picture in pictures(notebook)] == [True, True]
    *_, policies = code_cells(notebook)
    totals = {line.split()[0]: float(line.split()[-2]) for line in text_of(policies).splitlines()}
    assert list(totals) == [*REFERENCES, "agent"]
    assert totals["agent"] < min(totals[name] for name in REFERENCES)
    assert not any("Error" in output.output_type for cell in code_cells(notebook) for output in cell.outputs)


def test_the_notebook_of_training_runs_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (path,) = NOTEBOOKS
    notebook = nbformat.read(path, as_version=4)
    for usual, few in FEW.items():
        (place,) = [cell for cell in code_cells(notebook) if usual in cell.source]
        place.source = place.source.replace(usual, few)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    notebook.cells.append(nbformat.v4.new_code_cell("import sys; print(sys.executable)"))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    *_, policies, python = code_cells(notebook)
    assert text_of(python).split() == [sys.executable]
    assert [line.split()[0] for line in text_of(policies).splitlines()] == [*REFERENCES, "agent"]
    assert len(pictures(notebook)) == 2
