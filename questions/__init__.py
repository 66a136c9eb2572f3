"""Questions to a stored run: from Python, from the command line, for figures and the page."""
