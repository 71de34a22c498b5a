"""What bench/gradients.py measures: formulas, networks, loops, trees, first results and memory.

The trees are those of the examples, so importing this puts their folder on the path.
"""

from __future__ import annotations

import batching_work  # noqa: F401  # the folder of the examples
