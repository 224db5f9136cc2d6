"""Problems with constraints: share of targets hit, beside methods that take constraints."""
