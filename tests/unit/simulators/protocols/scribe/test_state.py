"""What a peer keeps of the trees."""

from __future__ import annotations

from vizpub.simulators.protocols.pastry.parameters import SIZES, bytes_of
from vizpub.simulators.protocols.scribe.state import REMEMBERED, UNSURE, RecentMessages, TreeMember


def test_recent_publications_are_remembered_and_old_ones_forgotten() -> None:
    recent = RecentMessages()
    for message in range(3 * REMEMBERED):
        assert recent.is_new(message)
        assert not any(recent.is_new(seen) for seen in (message, max(0, message - REMEMBERED + 1)))
    assert recent.is_new(0)


class TestMember:
    def member(self) -> TreeMember:
        member = TreeMember(7)
        for topic in (1, 2):
            member.group(topic)
            for child in (30, 31):
                member.add_child(topic, child)
        return member

    def test_beat_names_all_trees_of_the_child(self) -> None:
        member = self.member()
        member.set_path(2, (4, 5))
        child = member.children[30]
        assert member.beat_for(child, SIZES) == ((1, (*UNSURE, 7)), (2, (4, 5, 7)))
        assert child.size == bytes_of(ids=2 + 2 + 3)

    def test_beat_is_the_same_object_until_its_content_changes(self) -> None:
        member = self.member()
        beats = [member.beat_for(member.children[child], SIZES) for child in (30, 31)]
        assert not member.set_path(1, UNSURE)
        member.drop_child(2, 31)
        assert member.beat_for(member.children[30], SIZES) is beats[0]
        assert member.beat_for(member.children[31], SIZES) == beats[1][:1]
        assert member.set_path(1, ())
        assert member.beat_for(member.children[30], SIZES) == ((1, (7,)), beats[0][1])

    def test_child_of_no_tree_is_dropped(self) -> None:
        member = self.member()
        for topic in (1, 2, 1):
            member.drop_child(topic, 31)
        assert set(member.children) == {30}
        assert [list(group.children) for group in member.groups.values()] == [[30], [30]]

    def test_peer_is_attached_unless_its_path_is_unsure(self) -> None:
        group = self.member().group(1)
        states = []
        for group.path in (UNSURE, (*UNSURE, 3), (), (3, 4)):
            states.append(group.is_attached)
        assert states == [False, False, True, True]
