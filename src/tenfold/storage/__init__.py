"""Storage kinds: how a value's elements are stored in its buffers; dense is the only one."""
