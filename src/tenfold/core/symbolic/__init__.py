"""Symbolic shapes: lengths as formulas, the guards that were decided on, and size programs."""
