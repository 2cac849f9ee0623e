"""A signal ends a command by an exception, and never in the middle of what an event loop does."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fleetprof_cli.local.interruption import SIGNALS, Interruption


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield Interruption()
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@contextmanager
def raises(number: signal.Signals) -> Iterator[None]:
    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as leaving:
        yield
    if isinstance(leaving.value, SystemExit):
        assert leaving.value.code == 128 + number


@pytest.mark.parametrize("number", SIGNALS)
def test_outside_of_an_event_loop_a_signal_raises_at_once(interruption: Interruption, number: signal.Signals) -> None:
    with raises(number):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("makes", ["__init__", "_make_self_pipe", "close"])
def test_a_loop_is_made_and_closed_whole_when_a_signal_comes_meanwhile(
    interruption: Interruption, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, makes: str
) -> None:
    kind = asyncio.SelectorEventLoop
    make = getattr(kind, makes)
    events = []

    def be_interrupted(loop: asyncio.AbstractEventLoop) -> None:
        signal.raise_signal(number)
        make(loop)
        events.append(makes)

    async def work() -> None:
        events.append("works")
        await asyncio.sleep(0)

    monkeypatch.setattr(kind, makes, be_interrupted)
    with raises(number):
        interruption.run(work())
    assert events == (["works", makes] if makes == "close" else [makes])


@pytest.mark.parametrize("number", SIGNALS)
def test_in_an_event_loop_a_step_ends_before_the_signal_does_its_work(
    interruption: Interruption, number: signal.Signals
) -> None:
    events = []

    async def work() -> None:
        signal.raise_signal(number)
        events.append("the step ends")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            events.append("cancelled")
            await asyncio.sleep(0)
            events.append("cleaned up")
            raise

    with raises(number):
        interruption.run(work())
    assert events == ["the step ends", "cancelled", "cleaned up"]


async def fail_when_cancelled() -> None:
    signal.raise_signal(signal.SIGTERM)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise OSError("what a cancelled work says") from None


async def end_before_it_is_cancelled() -> None:
    signal.raise_signal(signal.SIGTERM)


async def be_interrupted_when_all_is_done() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.add_done_callback(lambda _task: signal.raise_signal(signal.SIGTERM))


@pytest.mark.parametrize("work", [fail_when_cancelled, end_before_it_is_cancelled, be_interrupted_when_all_is_done])
def test_however_the_work_ends_the_exit_code_is_the_signals(interruption: Interruption, work: object) -> None:
    assert callable(work)
    with pytest.raises(SystemExit) as leaving:
        interruption.run(work())
    assert leaving.value.code == 128 + signal.SIGTERM


def test_without_a_signal_the_result_is_the_works(interruption: Interruption) -> None:
    async def work() -> int:
        return 7

    assert interruption.run(work()) == 7


def test_work_with_handlers_of_its_own_leaves_the_interruption_in_place(interruption: Interruption) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, print)
        loop.remove_signal_handler(signal.SIGTERM)

    interruption.run(work())
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)
