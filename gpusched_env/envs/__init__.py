"""The environments: one episode at a time, and many at once in `vector`. The kernels compute."""
