"""The network between nodes: machines that help jobs on several nodes, and a core that may be busy."""
