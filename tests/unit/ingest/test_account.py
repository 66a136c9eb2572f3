"""Where the time of an ingest went."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import psutil
import pytest

from tests.support.words import tells
from vizpub.ingest.account import END, START, Account, AccountPart, SparkJob

PARTS = [
    AccountPart("start of Python", 0, 1),
    AccountPart("look at the input", 1, 2),
    AccountPart(START, 2, 5),
    AccountPart("parse", 5, 8),
    AccountPart("finish", 8, 10),
    AccountPart(END, 10, 11),
]
JOBS = [
    SparkJob("write links", 6, 8.5, 3),
    SparkJob("collect", 5.5, 6.5, 1),
    SparkJob("write peers", 7, 7.25, 1),
    SparkJob("count", 9, 9.5, 2),
]


@pytest.fixture
def account() -> Account:
    return Account(parts=PARTS, jobs=JOBS, called=0)


def test_jobs_that_overlap_count_once(account: Account) -> None:
    assert account.seconds_in_jobs() == pytest.approx(3 + 0.5)
    assert account.seconds_in_jobs(8, 10) == pytest.approx(0.5 + 0.5)
    assert account.seconds_in_jobs(0, 5) == 0


def test_lines_add_up_to_the_whole(account: Account) -> None:
    lines = list(account.part_lines())
    assert [part for part, *_ in lines] == PARTS
    assert sum(part.end - part.begin for part in PARTS) == account.seconds == 11
    assert sum(inside for _, inside, _ in lines) == pytest.approx(account.seconds_in_jobs())
    assert sum(tasks for *_, tasks in lines) == sum(job.tasks for job in JOBS)


def test_part_has_what_its_processes_used() -> None:
    account = Account()
    with account.part("before"):
        pass
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        account.java = psutil.Process(java.pid)
        began = time.process_time()
        with account.part("stage"):
            sum(range(10**6))
        least = time.process_time() - began
        java.communicate(b"\n")
    before, stage = account.parts[1:]
    assert before.used is None
    assert stage.used
    # The system counts in hundredths of a second.
    assert least - 0.05 < stage.used.seconds
    assert stage.used.resident > psutil.Process().memory_info().rss / 2


def test_line_adds_up_to_the_whole(account: Account) -> None:
    whole, _, told = account.summary_line().partition(": ")
    assert whole == "11.0 s"
    found = [float(number) for number in re.findall(r" (\d+\.\d)(?:,|$)", told)]
    assert sum(found) == pytest.approx(11)
    tells(told, "4 jobs", "3.5")


def test_longest_jobs_come_first(account: Account) -> None:
    assert [job.name for job in account.longest_jobs(2)] == ["write links", "collect"]


def test_parts_follow_one_another_from_the_call_on() -> None:
    account = Account()
    for name in ("one", "two"):
        with account.part(name):
            pass
    first, one, two = account.parts
    assert (first.name, first.begin) == ("start of Python", 0)
    assert first.end == one.begin <= one.end <= two.begin <= two.end == account.seconds
