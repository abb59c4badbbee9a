"""Folders of agents: what is written, read and checked, with no code in them."""
