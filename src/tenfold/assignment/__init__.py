"""Assignment: `x[key] = e`, `x op= e`, `tn.assign(x, e)`: what a name holds from then on."""
