"""Decisions over HTTP: a job manager sends what it knows at an event, and gets who runs where on what.

The decision is the one that the simulator would make in that state: `decision` makes a state of a request and calls the
policy on it. `server` is the door, `pool` the processes behind it, `client` a policy that asks a service.
"""
