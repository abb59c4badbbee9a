"""Search over whole rounds: random constructions, Local Search, Path Relinking, and the proxy that guides them."""
