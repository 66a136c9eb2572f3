"""What a system may bring instead of the world's models."""

from __future__ import annotations

from typing import Protocol

from vizpub.simulators.world.publications import PublicationModel
from vizpub.simulators.world.subscriptions import Workload


class OwnWorkload(Workload, PublicationModel, Protocol):
    """Who subscribes to what, and who publishes when: both of one model."""
