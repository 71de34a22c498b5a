"""Linear algebra rewriting: matrix polynomials, chain order, structure and solves."""
