"""Training: settings, algorithms, exact resume. Algorithms of Stable-Baselines3 need the extra `agents`."""
