"""Our algorithms against the reference implementations of the same algorithms."""
