"""Policies that choose power limits so that a site stays under its cap."""
