"""Lists of steps from event to event: times by hand, causes, and lists that wait for ever."""

from collections.abc import Sequence

from spmilp.commands.commands import Signal, Wait
from spmilp.simulator.events import Blocked, Events, Send, Step, Work


def run_of(
    *lists: Sequence[Step], capacity: Sequence[float] = (8.0,), takes: bool = False
) -> Events:
    """Return lists that have run to their end."""
    events = Events(lists, capacity, takes=takes)
    assert events.run() == []
    return events


def times(events: Events) -> dict[int, tuple[float, float]]:
    """Return the start and the end of each activity."""
    return {number: (one.start, one.end) for number, one in events.activities.items()}


def send(number: int, size: int, setup: float = 0.0, latency: float = 0.0) -> Send:
    """Return a transfer over link 0, at up to 8 bytes per cycle."""
    return Send(number, setup, size, 8.0, (0,), latency)


def test_a_pipelined_list_goes_on_when_all_is_sent_and_its_signals_come_in_order() -> None:
    sends = send(0, 80, 5.0, 7.0), send(1, 8, 1.0, 1.0), send(2, 8)
    first, second, third = (each._replace(pipelined=True) for each in sends)
    channel = [first, Signal(0), second, Signal(0), Wait(0, 1), third]
    events = run_of(channel, [Wait(0, 2), Work(3, 4.0)])
    # The second arrives before the first, for which its signal waits.
    assert times(events) == {0: (0.0, 22.0), 1: (15.0, 18.0), 2: (22.0, 23.0), 3: (22.0, 26.0)}
    assert events.activities[3].after is events.activities[2].after is events.activities[0]


def test_latency_and_set_up_hold_no_link() -> None:
    # The second has the link for itself while the first is set up, and after it has sent all.
    events = run_of([send(0, 80, setup=10.0, latency=100.0)], [send(1, 160)])

    # Until cycle 10 the second sends 80 B; then both have 4 B per cycle for 20 cycles.
    assert times(events) == {0: (0.0, 130.0), 1: (0.0, 30.0)}


def test_a_wait_for_a_semaphore_takes_what_it_waited_for() -> None:
    lists: list[list[Step]] = [
        [Work(0, 4.0), Signal(0), Work(1, 4.0), Signal(0)],
        [Wait(0, 1), Work(2, 1.0), Wait(0, 1), Work(3, 1.0)],
    ]

    assert times(run_of(*lists, takes=True))[3] == (8.0, 9.0)
    assert times(run_of(*lists))[3] == (5.0, 6.0), "a counter stays as it is"


def test_lists_that_wait_for_ever_are_told() -> None:
    events = Events([[Wait(0, 2), Work(0, 1.0)], [Signal(0), Work(1, 3.0)]], (), takes=False)

    assert events.run() == [Blocked(list=0, step=0, reached=1)]
    assert times(events) == {1: (0.0, 3.0)}
