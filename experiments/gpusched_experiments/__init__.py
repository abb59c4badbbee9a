"""Experiments: the command line, comparisons, published experiments, studies of learning, and certificates."""

from gpusched_env.version import VERSION

__version__ = VERSION
