"""Licences: a job pays for each hour in which it holds GPUs, by its application. No file of the core knows of them."""
