"""Where calls are made: in processes of this machine, or on the machines of a cluster."""
