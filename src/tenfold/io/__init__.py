"""Input and output: files and typed expressions from outside of Python, checked before use.

`expression` and `evaluate` read formulas by an allow-list, `arrays` reads files, `file_writing` and
`png` write them atomically. Their exceptions are in `input_errors`: one line of text each.
"""
