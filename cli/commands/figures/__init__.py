"""Figures: `vizpub plot`, and the film of one."""
