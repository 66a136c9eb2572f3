"""The words every part shares: errors, the clock, the tables; and where a Java is (`jvm`)."""
