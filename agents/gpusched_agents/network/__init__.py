"""Networks: as torch trains them, and as kernels apply them."""
