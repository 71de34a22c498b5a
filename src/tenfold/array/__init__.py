"""Array package: the Array's methods, assignment, write-through views and external buffers."""
