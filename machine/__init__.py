"""Access to the machine: files, locks, processes, compiled code; `jvm` finds a Java."""
