"""The report contract: the format in which peers report. Standard library only.

In and out: files of records (`records`). `files.ReportReader` reads them, `files.ReportWriter`
writes them, and `files.problems` checks a record.
"""
