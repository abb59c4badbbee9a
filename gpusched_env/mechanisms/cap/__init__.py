"""A cap on the power of the site: hard or soft, with periods of which policies are told before."""
