"""Published rules that choose when a job runs by a price, or grams of CO2, that changes with time, and their policies."""
