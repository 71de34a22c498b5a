"""Linear algebra on the cpu device: LAPACK drivers as programs of calls."""
