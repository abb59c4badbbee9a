"""The commands of what is reproduced."""
