"""The Array: its methods, assignment, views that write through, windows on external buffers."""
