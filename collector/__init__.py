"""The live collector: reports of running peers, in a log first and in a run within seconds."""
