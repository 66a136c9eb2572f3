"""Compiled kernels: numpy in, numpy out, one snapshot of the overlay at a time.

A snapshot has n peers, numbered 0 to n-1, and its distinct links in compressed sparse rows:
`idx[ptr[v]:ptr[v + 1]]` are the neighbours of v, ascending, without v itself. Every function
here states which rows it wants: outgoing, incoming or either way (of which the outgoing come
first).
"""
