"""Networks: in torch for training, and in kernels for decisions."""
