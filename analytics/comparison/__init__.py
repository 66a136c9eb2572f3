"""Comparison of runs: the metrics of each, groups of replicates, and estimates over them.

In: opened runs (`vizpub.questions.run.Run`). Out: Arrow tables of means, ratios and differences.
Entry: `per_run.measure_runs`, then `tables.compare_groups`.
"""
