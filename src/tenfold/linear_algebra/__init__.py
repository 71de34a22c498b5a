"""Rewriting of linear algebra: matrix polynomials, chain order, structure, solves."""
