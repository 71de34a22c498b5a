"""Files and typed expressions: what comes from outside of Python, checked before it is used.

`expression` and `evaluate` read formulas by an allow-list, `arrays` reads files, `writing` and
`png` write them atomically. What they raise stands in `errors`: one line of text each.
"""
