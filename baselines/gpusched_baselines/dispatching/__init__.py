"""Dispatching: jobs in some order, each on the cheapest configuration that meets its due date."""
