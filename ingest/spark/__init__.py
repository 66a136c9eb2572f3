"""Spark as an ingest needs it: the session and its Java, executors elsewhere, sessions that stay.
`session.spark_session` is the one place that starts one.
"""
