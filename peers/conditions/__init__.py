"""Runs without a known budget, with many candidates out, and with noise."""
