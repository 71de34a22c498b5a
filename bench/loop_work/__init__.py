"""Loops of Python beside NumPy and beside waiting in every step: programs, and their measures."""
