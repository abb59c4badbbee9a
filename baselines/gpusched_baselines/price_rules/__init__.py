"""Published rules that choose when jobs run by a price, or grams of CO2, that changes; and their policies."""
