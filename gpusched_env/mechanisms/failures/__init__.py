"""Failures: nodes that go down and come back, with notice or without, checkpoints, and the work that jobs lose."""
