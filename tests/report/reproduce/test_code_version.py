from gpusched_env.report.reproduce import code_version as module
from gpusched_env.report.reproduce.code_version import code_version, cores, machine


def version_of(root, monkeypatch):
    monkeypatch.setattr(module, "files", lambda package: root / package)
    return code_version.__wrapped__()


def test_the_version_follows_every_source_and_table_that_decides_a_run(tmp_path, monkeypatch):
    for name in ("gpusched_env/model/job.py", "gpusched_env/workload/data/times.csv", "gpusched_baselines/sts.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    for name in ("simulator", "report/reproduce/changes"):
        (tmp_path / "gpusched_env" / name).mkdir(parents=True)
    (tmp_path / "gpusched_env" / "report/reproduce/measures.py").write_text("one")
    versions = {version_of(tmp_path, monkeypatch)}
    assert versions == {version_of(tmp_path, monkeypatch)}
    (tmp_path / "gpusched_env" / "report" / "page.py").write_text("reports do not decide")
    (tmp_path / "gpusched_env" / "model" / "notes.md").write_text("nor do notes")
    assert versions == {version_of(tmp_path, monkeypatch)}
    for name in (
        "gpusched_env/model/job.py", "gpusched_env/workload/data/times.csv", "gpusched_baselines/sts.py",
        "gpusched_env/report/reproduce/measures.py",
    ):  # fmt: skip
        (tmp_path / name).write_text("two")
        versions.add(version_of(tmp_path, monkeypatch))
    (tmp_path / "gpusched_env/simulator/new.py").write_text("")
    versions.add(version_of(tmp_path, monkeypatch))
    assert len(versions) == 6


def test_a_source_that_is_renamed_is_other_code(tmp_path, monkeypatch):
    for name in ("model", "workload", "simulator", "report/reproduce/changes"):
        (tmp_path / "gpusched_env" / name).mkdir(parents=True)
    (tmp_path / "gpusched_env/report/reproduce/measures.py").write_text("")
    (tmp_path / "gpusched_baselines").mkdir()
    (tmp_path / "gpusched_baselines/a.py").write_text("same")
    before = version_of(tmp_path, monkeypatch)
    (tmp_path / "gpusched_baselines/a.py").rename(tmp_path / "gpusched_baselines/b.py")
    assert version_of(tmp_path, monkeypatch) != before


def test_the_present_code_has_a_version_and_the_machine_a_name():
    assert len(code_version()) == 16
    assert code_version() == code_version.__wrapped__()
    assert f"{cores()} cores" in machine()
