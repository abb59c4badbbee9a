"""Training: settings, algorithms, imitation, exact resume. Algorithms of Stable-Baselines3 need the extra `agents`."""
