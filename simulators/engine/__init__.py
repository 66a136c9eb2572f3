"""The simulator: virtual time, the network, the reports, and the plan of a run.

In: a `plan.Plan`. Out: reports and `simulation.json` in a `folder.Folder`.
Entry: `simulation.simulate`.
"""
