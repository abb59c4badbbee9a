"""Published answers beside ours: what `gpusched conform` compares, each kind in a module of its name."""

from gpusched_reproductions.conform.answer import NAMES, Answer, answers

__all__ = ["NAMES", "Answer", "answers"]
