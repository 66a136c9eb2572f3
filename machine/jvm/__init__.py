"""The Java runtime (`java.find_java`), the locked jars (`artifacts.jars`), a fast start of Java."""
