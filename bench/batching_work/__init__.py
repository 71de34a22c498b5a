"""What bench/batching.py measures: trees, loops, calls, graphs, adaptive steps, and reads between.

What is measured of trees, graphs and adaptive steps are the examples themselves, so importing this
puts their folder on the path.
"""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
