"""Runs side by side: what each comes to, which are replicates, and estimates over them. Reads runs
by `runstore`; begins in `tables.compare`.
"""
