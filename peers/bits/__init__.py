"""Bits and categories: ours beside the others."""
