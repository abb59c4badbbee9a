"""Cells of tenants that are bound to nodes when they are used, and racks of nodes."""
