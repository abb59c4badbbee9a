"""Names of the features of the cap on the power of a site."""

from __future__ import annotations

from gpusched_env.observation.ratios import Names

_cap = Names()
CAP = _cap("cap now / power of all GPUs, at most 1; 1 without a cap")
POWER = _cap("power of what is held now / power of all GPUs; 0 without a cap")
LEFT = _cap("(cap now - power of what is held now) / power of all GPUs, from -1 to 1; 1 without a cap")
NEXT_CAP = _cap("next announced cap / power of all GPUs, at most 1; else that now")
NEXT_IN = _cap("days until it, at most 1; 1 without one")
ABOVE = _cap("squash(price of a kWh above the cap / price of energy with which policies plan); 1 where it is hard")
FEATURES = tuple(_cap)
"""Features of the cap on the site's power, which `cap_features` adds to observations."""
