"""What vizpub needs of a machine: files, locks, processes, compiled code; `jvm` finds Java."""
