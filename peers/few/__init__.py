"""Few evaluations: mean ranks of the regret after 20 to 200 evaluations."""
