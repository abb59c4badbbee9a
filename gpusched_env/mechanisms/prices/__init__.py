"""Prices of energy by period, a demand charge, and a price of held GPUs by the hour."""
