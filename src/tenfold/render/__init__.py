"""Rendering: from a Kernel to the text of a program. The text depends on the Kernel alone."""
