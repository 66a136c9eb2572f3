"""The report contract: what a reporter writes, whatever it is. Standard library only; `files` has
the reader and the writer, `records` the records.
"""
