"""Scheduling: fusion, dependence, buffers, loop schedules, and the verifier of kernels."""
