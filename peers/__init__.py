"""Side-by-side runs of racecars and other optimizers."""
