"""Systems that share clusters in practice, each beside its own published numbers."""
