"""Systems that report: overlays in virtual time, and the world they live in."""
