"""Lower bounds on the total cost of an instance."""
