"""Configurations of several whole nodes."""
