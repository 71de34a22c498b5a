"""Pass rules: how the verifier of a scheduling pass refuses a schedule.

Takes a condition and the rule that it violates, raises VerifyError, which names the rule.

>>> require(2 < 1, "item {} reads item {}", 1, 2)
Traceback (most recent call last):
...
tenfold.errors.VerifyError: verify: item 1 reads item 2
"""

from __future__ import annotations

from tenfold.errors import VerifyError


def require(holds: bool, rule: str, *values: object) -> None:
    """Raise VerifyError unless a condition holds; `values` fill in the violated rule."""
    if not holds:
        raise VerifyError("verify", rule.format(*values))


__all__ = ["require"]
