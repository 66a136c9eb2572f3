"""Compiled kernels: metrics of one snapshot of the overlay. Numpy in, numpy out.

A snapshot has n peers, numbered 0 to n-1, and its distinct links in compressed sparse rows:
`idx[ptr[v]:ptr[v + 1]]` are the neighbours of v, ascending, without v itself. Every function
states which rows it takes: outgoing, incoming, or either way (outgoing first).
`vizpub.analytics.blocks` calls them for each interval.
"""
