"""What users declare: operations of their own, and opaque Python functions as one node."""
