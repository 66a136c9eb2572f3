"""The engine `graphframes`: the overlays of many intervals as one graph, measured by Spark.

In: the versions of a run. Out: rows of `vizpub.analytics.structure.STRUCTURE_SCHEMA`.
Entry: `engine.measure_with_graphframes`.
"""
