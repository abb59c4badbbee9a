"""Gavel (OSDI 2020): our event loop and our port of its policies beside the figures of its authors' simulator."""
