"""Ours and other optimizers on the same problems, budgets and seeds."""
