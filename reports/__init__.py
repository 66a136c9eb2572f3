"""The report contract, and the client by which peers report. Standard library only.

In and out: records (`records`), in files that `files.ReportReader` reads and `files.ReportWriter`
writes, or sent by `client.Reporter` and `pulled.ReportServer`. The modules import each other
relatively: some of them are also installed as the package `vizpub_reporter`, for peers.
"""
