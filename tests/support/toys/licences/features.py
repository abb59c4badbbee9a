"""What an environment with `features=("toys.licences",)` observes of licences."""

from gpusched_env.observation.ratios import Names

_licence = Names()
OWN = _licence("squash(price of the current job's licence [€/h])")
ALL = _licence("squash(price of the licences in use [€/h])")
FEATURES = tuple(_licence)
