"""Experiments: the command line, comparisons, published experiments, studies of learning, and certificates."""
