"""Reference rules for power limits under a cap: one for all, by tiers, or by two thresholds."""
