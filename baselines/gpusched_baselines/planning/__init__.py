"""Planning for one job: hull, exact stochastic plan, epochs left, cheapest configuration; and the bounds."""
