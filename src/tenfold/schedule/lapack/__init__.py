"""LAPACK in the schedule: which driver computes an operation, on which layouts."""
