"""The rewrites: what may take the place of what."""
