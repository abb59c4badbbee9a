"""Measurements of speed: `python -m benchmarks` measures all, `python -m benchmarks rounds steps` a choice."""
