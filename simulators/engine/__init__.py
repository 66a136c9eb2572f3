"""Virtual time: a clock, a network, peers that report, and what is simulated. Begins in
`simulation`.
"""
