"""Array package: methods of Array, and NumPy functions and ufuncs of Arrays."""
