"""The figures of Ferretti's paper on gossip over complex networks (2012): formula and simulation.

Its networks have no churn and its events no overlap, so events are counted by compiled code,
without reports (`vizpub.simulators.protocols.gossip.events`), and no run is ingested.
"""
