"""Devices: each module declares one; `import tenfold` imports all of them."""
