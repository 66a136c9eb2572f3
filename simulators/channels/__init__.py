"""Broadcast channels between a server and its clients (Bose, The Pub-Sub Simulator, 1999).

In: `parameters.ChannelParameters`, a number of clients and a seed, as a `layout.Layout`. Out:
counts of a run of the pipeline (`running.run`, compiled), the rate at which it overloads
(`liftoff.liftoff`), or reports of all peers (`system.Channels`).
"""
