"""LAPACK runtime: linear algebra on the cpu device, as programs of LAPACK driver calls."""
