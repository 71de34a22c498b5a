"""Mutation package: assignment, views that write through, and external buffers."""
