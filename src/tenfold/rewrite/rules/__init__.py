"""Rule families: rewrite rules on elements, views and reductions, one family a file."""
