"""LAPACK in the schedule: the driver of each operation, on which layouts."""
