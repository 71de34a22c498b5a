"""Symbolic shapes: lengths as formulas, their guards, and size programs."""
