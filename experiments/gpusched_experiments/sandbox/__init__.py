"""Policies that nobody trusts: they decide in a process of their own, and what they decide is checked and done here."""
