"""Devices and executables: what computes. Each device is a file that declares itself."""
