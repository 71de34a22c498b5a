"""Namespace: the public functions, generated from the op table."""
