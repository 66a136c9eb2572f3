"""The systems that can be simulated, by name. Their code is imported on use."""

from __future__ import annotations

import sys
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vizpub.machine.modules import module_of_file
from vizpub.model.errors import InputError, UnknownName, cause_of

if TYPE_CHECKING:
    from vizpub.simulators.engine.network import System

NO_PARAMETERS = "'parameters' that are a dataclass"


@dataclass(frozen=True)
class _Entry:
    """The location of a system: a class with the constructor (network, parameters, topics).

    `parameters` is annotated as a frozen dataclass whose fields all have defaults; `topics` is the
    number of topics.
    """

    module: str
    """Name of the module, or path of a .py file."""
    system: str
    summary: str = ""

    @property
    def make(self) -> type[System]:
        """The class of the system. Raises: InputError."""
        system_class = getattr(_module(self.module), self.system, None)
        if not isinstance(system_class, type):
            raise InputError(f"{self.module} has no class '{self.system}'")
        return system_class

    @property
    def parameters_type(self) -> type[Any]:
        """The class of its parameters. Raises: InputError."""
        declared = signature(self.make).parameters.get("parameters")
        kind = declared and declared.annotation
        if isinstance(kind, str):
            kind = getattr(sys.modules[self.make.__module__], kind, None)
        if not is_dataclass(kind):
            raise InputError(
                f"{self.system}'s constructor has no {NO_PARAMETERS}",
                "simulators/README.md shows how to write a system",
            )
        assert isinstance(kind, type)
        return kind


SYSTEMS = {
    "bayeux": _Entry(
        "vizpub.simulators.protocols.bayeux.system",
        "Bayeux",
        "Multicast trees that a root grows towards its members (Zhuang et al. 2001).",
    ),
    "broadcast-cyclon": _Entry(
        "vizpub.simulators.protocols.broadcast.cyclon",
        "BroadcastCyclon",
        "Broadcasts on CYCLON's views.",
    ),
    "broadcast-or-tree": _Entry(
        "vizpub.simulators.protocols.scribe.popularity",
        "BroadcastOrTree",
        "Scribe on Chord, or a broadcast on popular topics (Vivoli et al. 2019).",
    ),
    "broadcast-static": _Entry(
        "vizpub.simulators.protocols.broadcast.static",
        "BroadcastStatic",
        "Broadcasts on a random graph, or on that of a file.",
    ),
    "channels": _Entry(
        "vizpub.simulators.channels.system",
        "Channels",
        "Broadcast channels between a server and its clients (Bose 1999; partly our reading).",
    ),
    "chord": _Entry(
        "vizpub.simulators.protocols.chord.system",
        "Chord",
        "Lookups on a ring with fingers (Stoica et al. 2003).",
    ),
    "cyclon": _Entry(
        "vizpub.simulators.protocols.poldercast.cyclon",
        "Cyclon",
        "Peer sampling by shuffling views (Voulgaris et al. 2005).",
    ),
    "damulticast": _Entry(
        "vizpub.simulators.protocols.damulticast.system",
        "DaMulticast",
        "Gossip among subscribers, up a hierarchy of topics (Baehni et al. 2004).",
    ),
    "floodsub": _Entry(
        "vizpub.simulators.protocols.libp2p.pubsub",
        "Floodsub",
        "Flooding among the connected subscribers of a topic (libp2p).",
    ),
    "gossip": _Entry(
        "vizpub.simulators.protocols.gossip.system",
        "Gossip",
        "Gossip by what neighbours subscribe to, on a given topology (Ferretti 2012).",
    ),
    "gossipsub": _Entry(
        "vizpub.simulators.protocols.libp2p.gossipsub",
        "Gossipsub",
        "A mesh per topic and gossip beside it (libp2p's gossipsub v1.1).",
    ),
    "hyparview": _Entry(
        "vizpub.simulators.protocols.hyparview.system",
        "HyParView",
        "Broadcasts on small symmetric views (Leitão et al. 2007), also Plumtree's.",
    ),
    "magnet": _Entry(
        "vizpub.simulators.protocols.magnet.system",
        "Magnet",
        "Scribe's trees on a small world of like interests (Girdzijauskas et al. 2010).",
    ),
    "pastry": _Entry(
        "vizpub.simulators.protocols.pastry.system",
        "Pastry",
        "Prefix routing with leaf sets (Rowstron and Druschel 2001).",
    ),
    "poldercast": _Entry(
        "vizpub.simulators.protocols.poldercast.system",
        "PolderCast",
        "A ring per topic over CYCLON and VICINITY (Setty et al. 2012).",
    ),
    "quasar": _Entry(
        "vizpub.simulators.protocols.quasar.system",
        "Quasar",
        "Random walks, directed where members are near (Wong and Guha 2008).",
    ),
    "scribe": _Entry(
        "vizpub.simulators.protocols.scribe.system",
        "Scribe",
        "A multicast tree per topic on Pastry (Castro et al. 2002).",
    ),
    "scribe-chord": _Entry(
        "vizpub.simulators.protocols.scribe.on_chord",
        "ScribeChord",
        "A multicast tree per topic on Chord (Vivoli et al. 2019).",
    ),
    "spidercast": _Entry(
        "vizpub.simulators.protocols.spidercast.system",
        "SpiderCast",
        "Neighbours that cover each topic (Chockler et al. 2007).",
    ),
    "stan": _Entry(
        "vizpub.simulators.protocols.stan.system",
        "StAN",
        "A random overlay for each topic; they share links (Matos et al. 2010).",
    ),
    "vitis": _Entry(
        "vizpub.simulators.protocols.vitis.system",
        "Vitis",
        "Clusters of like interests, joined by relays to a rendezvous (Rahimian et al. 2011).",
    ),
}


def system_named(name: str) -> _Entry:
    """The system of that name, or a class given as MODULE:CLASS or FILE.py:CLASS.

    Raises: UnknownName.
    """
    if name in SYSTEMS:
        return SYSTEMS[name]
    module, is_own, system = name.rpartition(":")
    if not is_own:
        raise UnknownName("system", name, sorted(SYSTEMS))
    return _Entry(module, system)


def name_anywhere(name: str) -> str:
    """The name of a system in processes that work in other folders: files have absolute paths."""
    module, _, system = name.rpartition(":")
    return f"{Path(module).absolute()}:{system}" if module.endswith(".py") else name


def _module(name: str) -> ModuleType:
    is_file = name.endswith(".py")
    if not is_file and not all(map(str.isidentifier, name.split("."))):
        raise InputError(f"there is no module '{name}': a system is MODULE:CLASS or FILE.py:CLASS")
    try:
        return module_of_file(Path(name)) if is_file else import_module(name)
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise InputError(f"there is no module {name}: {cause_of(error)}") from error
