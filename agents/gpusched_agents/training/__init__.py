"""Training: algorithms, imitation, exact resume. Needs torch, the extra `agents`."""
