"""How the built-in application profiles are made from the public measurements."""
