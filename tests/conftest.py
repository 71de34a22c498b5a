"""What every room of the tests shares: the profile under which `make fuzz` runs."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("fuzz", max_examples=100_000)
