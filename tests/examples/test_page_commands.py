"""The commands of the pages that take seconds run."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from gpusched_agents import save_sb3
from page_commands import PageCommand, quick_commands
from page_files import run

pytestmark = pytest.mark.filterwarnings("ignore:.*is unpickled")
MODELS = {"slack.zip": "Adaptation", "runs/maskable/imitated.zip": "Flat"}


@pytest.mark.parametrize("command", quick_commands(slow=True), ids=lambda command: command.text)
def test_a_slower_command_of_a_page_runs(command: PageCommand, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind in MODELS.items():
        if name in command.text:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            envs = make_vec_env(f"gpusched_env/Slack{kind}-v0", 1)
            save_sb3(PPO("MlpPolicy", envs, n_steps=8, batch_size=8), name)
    run(command, tmp_path)
