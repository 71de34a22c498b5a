"""Runtime: the devices and their executables; each device is a file that declares itself."""
