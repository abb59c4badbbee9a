"""Muri's simulations (SIGCOMM 2022): its traces, and what it published of AntMan, Tiresias and SRTF on them."""
