"""Spread configurations, whose GPUs may be on any nodes."""
