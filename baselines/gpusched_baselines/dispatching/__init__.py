"""Dispatching: jobs in some order, each the cheapest configuration that will do."""
