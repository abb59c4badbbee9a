"""Tenants: who shares a cluster, and how: by name only, by quotas, with nodes of their own, or with cells."""
