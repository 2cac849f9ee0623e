"""The order in which the web UI works on requests: who asks for much holds up nobody but themselves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from fleetprof_webui.listener import turns
from fleetprof_webui.listener.turn_taking import TurnTaking
from fleetprof_webui.listener.turns import (
    ALLOWANCE_S,
    MOST_AT_ONCE,
    MOST_OF_ALL,
    MOST_WAITING,
    TooManyWait,
    Turn,
    Turns,
)
from starlette.types import Message, Receive, Scope, Send


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Service:
    """The turns of a service, in which what is asked for at once is taken or waits."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.turns = Turns(self.clock)
        self.began: list[str] = []
        self._requests: list[asyncio.Task[Turn]] = []

    async def ask(self, name: str, times: int = 1) -> None:
        for _ in range(times):
            self._requests.append(asyncio.create_task(self._take(name)))
        await self.settle()

    async def _take(self, name: str) -> Turn:
        turn = await self.turns.take(name)
        self.began.append(name)
        return turn

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def answer(self, name: str) -> None:
        """Ends the first request of this caller that is worked on."""
        task = next(task for task in self._requests if task.done() and task.result().caller == name)
        self._requests.remove(task)
        self.turns.end(task.result())
        await self.settle()

    async def answer_while_one_leaves(self, name: str) -> None:
        """The first that waits is cancelled, and before it notices a request ends."""
        waiting = next(task for task in self._requests if not task.done())
        waiting.cancel()
        self._requests.remove(waiting)
        await self.answer(name)

    async def give_up(self) -> None:
        """The first that waits leaves."""
        task = next(task for task in self._requests if not task.done())
        self._requests.remove(task)
        task.cancel()
        await self.settle()

    async def spend(self, name: str, seconds: float = ALLOWANCE_S + 1) -> None:
        """One request that takes so long, while nobody else asks."""
        await self.ask(name)
        self.clock.now_s += seconds
        await self.answer(name)
        self.began.clear()

    async def close(self) -> None:
        for task in self._requests:
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    yield made
    await made.close()


async def test_a_browser_s_requests_are_worked_on_at_once_and_no_more(service: Service) -> None:
    await service.ask("ann", MOST_AT_ONCE + 2)
    assert service.began == ["ann"] * MOST_AT_ONCE
    await service.ask("bob")
    assert service.began[-1] == "bob"
    await service.answer("ann")
    assert service.began.count("ann") == MOST_AT_ONCE + 1


@pytest.mark.attack
async def test_all_who_asked_for_much_share_one_place_in_turns_and_others_do_not_wait(service: Service) -> None:
    for name in ("eve", "mallory"):
        await service.ask(name)
    service.clock.now_s += 60
    for name in ("eve", "mallory"):
        await service.answer(name)
    service.began.clear()
    await service.ask("eve", 3)
    await service.ask("mallory", 3)
    await service.ask("ann", 2)
    assert service.began == ["eve", "ann", "ann"]
    for name in ("eve", "mallory", "eve", "mallory"):
        await service.answer(name)
    assert service.began[3:] == ["mallory", "eve", "mallory", "eve"]


async def test_a_request_that_is_cancelled_as_its_turn_comes_takes_none(service: Service) -> None:
    await service.ask("ann", MOST_AT_ONCE + 3)
    await service.answer_while_one_leaves("ann")
    assert service.began == ["ann"] * (MOST_AT_ONCE + 1)
    await service.answer("ann")
    assert service.began == ["ann"] * (MOST_AT_ONCE + 2)


async def test_the_allowance_comes_back(service: Service) -> None:
    await service.spend("eve", ALLOWANCE_S + 1)
    service.clock.now_s += 1
    await service.ask("eve", 2)
    assert service.began == ["eve", "eve"]


async def test_it_does_not_come_back_while_requests_wait(service: Service) -> None:
    await service.spend("eve")
    await service.ask("eve", 2)
    service.clock.now_s += 60
    await service.ask("eve")
    assert service.began == ["eve"]


async def test_who_asks_for_one_page_after_the_other_never_uses_it_up(service: Service) -> None:
    for _ in range(100):
        await service.spend("ann", 1)
    await service.ask("ann", 2)
    assert service.began == ["ann", "ann"]


async def test_a_minute_s_rest_is_enough_however_long_it_went_on(service: Service) -> None:
    await service.spend("eve", 1e6)
    service.clock.now_s += 60
    await service.ask("eve", 2)
    assert service.began == ["eve", "eve"]


async def test_who_had_much_under_way_waits_for_it_first(service: Service) -> None:
    await service.ask("eve", 3)
    service.clock.now_s += ALLOWANCE_S + 1
    await service.answer("eve")
    await service.ask("eve")
    assert len(service.began) == 3
    await service.answer("eve")
    await service.answer("eve")
    assert len(service.began) == 4


@pytest.mark.attack
async def test_what_waits_is_bounded_and_who_leaves_the_queue_makes_room(service: Service) -> None:
    callers = MOST_OF_ALL // MOST_WAITING
    for number in range(callers):
        await service.ask(f"c{number}", MOST_AT_ONCE + MOST_WAITING)
    await service.ask("late", MOST_AT_ONCE)
    for name in ("c0", "late"):
        with pytest.raises(TooManyWait):
            await service.turns.take(name)
    await service.give_up()
    await service.ask("late")
    await service.answer("late")
    assert service.began[-1] == "late"


@pytest.mark.attack
async def test_callers_who_have_left_are_forgotten(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MOST_CALLERS", 10)
    await service.ask("ann")
    for number in range(100):
        await service.ask(f"c{number}")
        await service.answer(f"c{number}")
    assert len(service.turns._callers) <= 11
    await service.answer("ann")


class Visit:
    """One request to an application that takes turns: its client's words, and what it was answered."""

    def __init__(self, application: TurnTaking, caller: str, path: str, method: str = "GET") -> None:
        self.words: asyncio.Queue[Message] = asyncio.Queue()
        self.answers: list[Message] = []
        scope = {"type": "http", "method": method, "path": path, "headers": [(b"caller", caller.encode())]}
        self.task = asyncio.create_task(application(scope, self.words.get, self._hear))

    async def _hear(self, message: Message) -> None:
        self.answers.append(message)

    def status(self) -> int | None:
        return self.answers[0]["status"] if self.answers else None


@asynccontextmanager
async def visits() -> AsyncIterator[Callable[..., Awaitable[Visit]]]:
    """Makes requests to an application: /hangs never answers, /stream never ends, a POST is read to its end."""
    made: list[Visit] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        while scope["method"] == "POST" and (await receive()).get("more_body"):
            pass
        if scope["path"] == "/hangs":
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            await receive()
        await send({"type": "http.response.body", "body": b""})

    application = TurnTaking(answer, name_caller=lambda request: request.headers["caller"])

    async def visit(*words: str) -> Visit:
        made.append(Visit(application, *words))
        for _ in range(5):
            await asyncio.sleep(0)
        return made[-1]

    yield visit
    for each in made:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in made), return_exceptions=True)


@pytest.mark.attack
@pytest.mark.parametrize("words", [("/stream",), ("/", "POST")], ids=["a stream", "a body that does not come"])
async def test_who_waits_for_a_client_has_no_turn(words: tuple[str, ...]) -> None:
    async with visits() as visit:
        slow = [await visit("eve", *words) for _ in range(2 * MOST_AT_ONCE)]
        assert (await visit("eve", "/")).status() == 200
        slow[0].words.put_nowait({"type": "http.request", "more_body": False})
        await asyncio.wait_for(slow[0].task, 10)
        assert slow[0].status() == 200


@pytest.mark.attack
async def test_who_may_not_wait_is_told_so_and_others_are_answered() -> None:
    async with visits() as visit:
        for _ in range(MOST_AT_ONCE + MOST_WAITING):
            await visit("eve", "/hangs")
        refused = await visit("eve", "/")
        assert refused.status() == 429
        assert b"too many requests of yours wait" in refused.answers[1]["body"]
        assert (await visit("ann", "/")).status() == 200
