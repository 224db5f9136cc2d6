"""Attacks on racecars: what goes wrong overnight, done on purpose. See `./scripts/attack --help`."""
