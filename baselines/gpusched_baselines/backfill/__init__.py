"""Backfilling by time limits: EASY, conservative, and the order of Slurm's multifactor priority."""
