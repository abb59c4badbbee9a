"""Search settings of a training with Optuna; the same command continues. It needs the extras `agents` and `search`.

Run `python examples/search_hyperparameters.py --trials 20 --steps 5000 --out runs/search`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import optuna

from gpusched_agents import AdaptationConfig, NetworkConfig, TrainingConfig, make_training


def main() -> None:
    """Print a line per trial, the costs of STS-X, STS and EDF on the same workloads, and the best trial."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20, help="trials in all, those of earlier runs included")
    parser.add_argument("--steps", type=int, default=5_000, help="steps of a training")
    parser.add_argument("--out", type=Path, default=Path("runs/search"), help="folder of trials and their database")
    (args := parser.parse_args()).out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=f"sqlite:///{args.out}/search.db", study_name="search", load_if_exists=True)
    finished = len(study.get_trials(states=[optuna.trial.TrialState.COMPLETE]))
    study.sampler = optuna.samplers.TPESampler(seed=finished)

    def cost(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True)
        config = TrainingConfig(
            agent=AdaptationConfig("ppo", {"learning_rate": rate}),
            scenarios=("track:slack",),
            steps=args.steps,
            network=NetworkConfig("controls", trial.suggest_categorical("hidden", (16, 32))),
            validation_seeds=tuple(range(20_000, 20_005)),  # of tracks
        )
        training = make_training(config, args.out / f"trial-{trial.number}")
        best = min(point["total_eur"] for point in training.run().curve)
        study.set_user_attr("references", training.references)
        print(f"trial {trial.number:3} costs {best:10.2f} €   {trial.params}")
        return best

    study.optimize(cost, n_trials=max(0, args.trials - finished))
    for name, eur in study.user_attrs["references"].items():
        print(f"{name:9} costs {eur:10.2f} €")
    print(f"best: trial {study.best_trial.number}, {study.best_value:.2f} €: {study.best_params}")


if __name__ == "__main__":
    main()
