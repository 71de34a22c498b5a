"""Command line: the command `tenfold` with demo, eval, explain, doctor, bench, cache and trace.

Takes the arguments of a command line. Output: files, lines of text and an exit code. Every failure
is one line on stderr.

| Code | Meaning |
|---|---|
| 0 | success |
| 1 | a defect of Tenfold itself |
| 2 | wrong command line, or an expression that is not allowed |
| 3 | an input that is missing, damaged or unsafe |
| 4 | a computation that failed |
| 5 | an output that cannot be written; the old one is untouched |
| 130 | interrupted |

    tenfold eval "sqrt(x**2 + y**2) / mean(x)" x=a.npy y=b.npz:key -o out.npy
"""
