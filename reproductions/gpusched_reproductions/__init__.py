"""What was published, and what systems in practice do, run again; not part of the installed package.

It runs from a checkout: `gpusched reproduce`, `gpusched study` and `gpusched certify`.
"""
