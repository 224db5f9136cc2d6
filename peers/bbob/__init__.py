"""The share of BBOB's targets by budget, ours beside the others."""
