"""How anything is printed: tables, trees, progress, foreign text, and the standard streams."""
