"""Where a Java is, the locked jars, and how Java starts quickly."""
