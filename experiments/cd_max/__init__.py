"""The experiments of the paper on CD-MAX (PeerJ Computer Science 7:e538, 2021): Tables 5 to 12.

No peer runs in it, and an overlay takes seconds, so the some thousand overlays are measured where
they are constructed, without reports.
"""
