"""Folders of agents: how they are written, read and checked; they contain no code."""
