"""Agents that steer STS-X: a small network reads every round and says what is dear, urgent and worth a change."""
