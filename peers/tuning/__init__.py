"""Tuning scikit-learn models in mixed spaces."""
