"""A cap on the power of the site: hard or soft, with periods that are announced to policies."""
