"""A widget's messages, as its front end sends and gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from comm.base_comm import BaseComm

from vizpub.explorer.notebook import RunView


class Answer(NamedTuple):
    """What came for a question."""

    id: Any
    status: int
    headers: Mapping[str, str]
    content: bytes


class FrontEnd(BaseComm):  # type: ignore[misc]
    """In place of the one that a kernel would open."""

    def __init__(self, view: RunView) -> None:
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        super().__init__()
        view.comm = self

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_: Any
    ) -> None:
        if msg_type == "comm_msg":
            self.sent.append((data, [bytes(each) for each in buffers or ()]))

    def tell(self, data: dict[str, Any]) -> list[tuple[dict[str, Any], list[bytes]]]:
        """What the kernel sends because of a message."""
        self.sent.clear()
        self.handle_msg({"content": {"data": data}, "buffers": []})
        return self.sent

    def ask(self, content: Any) -> Answer:
        ((told, (answer,)),) = self.tell({"method": "custom", "content": content})
        assert told.pop("method") == "custom"
        return Answer(**told["content"], content=answer)

    def move(self, state: str) -> None:
        """Change what is shown."""
        self.tell({"method": "update", "state": {"state": state}, "buffer_paths": []})
