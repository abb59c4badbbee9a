"""Pace: how fast jobs really are beside others, and how fast policies plan that they are."""
