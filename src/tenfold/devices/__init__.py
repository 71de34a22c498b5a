"""The devices: what computes. Each is a file that declares itself."""
