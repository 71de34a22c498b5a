"""The public functions, made from the op table."""
