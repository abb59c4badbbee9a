"""The notebook runs top to bottom on its small setting, and is kept without outputs."""

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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path):
    for cell in code_cells(nbformat.read(path, as_version=4)):
        assert (cell.outputs, cell.execution_count) == ([], None)


def test_the_notebook_of_training_runs_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    monkeypatch.delenv("GPUSCHED_SMALL", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (path,) = NOTEBOOKS
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("import sys; print(sys.executable, SMALL)"))
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    *_, policies, python = code_cells(notebook)
    assert text_of(python).split() == [sys.executable, "True"]
    assert [line.split()[0] for line in text_of(policies).splitlines()] == ["edf", "sts", "agent"]
    assert any(output.get("data", {}).get("image/png") for cell in code_cells(notebook) for output in cell.outputs)
