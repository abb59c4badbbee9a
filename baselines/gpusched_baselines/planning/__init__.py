"""Planning for one job: hull, exact stochastic plan, epochs left, and the cheapest configuration."""
