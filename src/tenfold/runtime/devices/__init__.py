"""Devices that compute by kernels: each module declares one, and `import tenfold` finds it."""
