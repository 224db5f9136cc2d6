"""What goes wrong overnight, done to racecars on purpose. See `./scripts/attack --help`."""
