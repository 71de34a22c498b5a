"""What every room of the tests shares: the profiles under which Hypothesis looks for examples.

No test fails for being slow: other work on the machine is no fault of ours. `make fuzz` tries
100,000 examples.
"""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.register_profile(
    "fuzz", hypothesis.settings.get_profile("tests"), max_examples=100_000
)
hypothesis.settings.load_profile("tests")
