"""Ours and other optimizers on the suites of COCO."""
