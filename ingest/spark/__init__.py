"""Spark sessions: settings, the Java process, executors elsewhere, sessions that keep running.

`session.spark_session` starts a session; `warm.warm_session` reuses a running one.
"""
