"""The operations: declarations, nothing else. Importing a page declares its operations."""
