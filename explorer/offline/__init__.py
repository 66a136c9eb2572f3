"""The page as one file that works offline."""
