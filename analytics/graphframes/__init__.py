"""The engine `graphframes`: many overlays as one graph, measured by Spark. Begins in
`engine.by_graphframes`.
"""
