"""The environments: one episode at a time, and many at once in `vector`. They wire; the kernels compute."""
