"""Planning: which operations run together, in which loops, in which memory."""
