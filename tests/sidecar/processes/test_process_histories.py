"""Rules that hold of the process table whatever happens in whatever order."""

from typing import ClassVar

from fleetprof_agent import wire
from fleetprof_sidecar.processes.events import Delivered, Expired
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import OrderRefused
from harness.sidecar.process_world import World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

S = 10**9


class Anything(RuleBasedStateMachine):
    """A launcher (pid 1), two trainers (2, 3) and a worker (4, of 2), in any order of events."""

    PIDS: ClassVar = {"L": (1,), "T": (2, 1), "U": (3, 1), "W": (4, 2, 1)}

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.orders = 0
        self.withdrawn = 0
        self.refused_roles: list[Role] = []

    @rule(name=st.sampled_from("LTUW"), idle=st.booleans(), taken=st.booleans())
    def poll(self, name: str, idle: bool, taken: bool) -> None:
        self.world.poll(name, *self.PIDS[name], idle=idle, taken=taken)

    @rule(name=st.sampled_from("TU"), step=st.integers(0, 100), named=st.booleans())
    def report(self, name: str, step: int, named: bool) -> None:
        pid = self.PIDS[name][0]
        self.world.hello(name, pid=pid, kineto=name if named else "", rank=0)
        self.world.steps(name, step, pid=pid)

    @rule(name=st.sampled_from("LTUW"), named=st.booleans())
    def wait(self, name: str, named: bool) -> None:
        """An agent has been loaded."""
        pid, parent = (*self.PIDS[name], 0)[:2]
        self.world.hello(name, pid=pid, ppid=parent, kineto=name if named else "", role=wire.WAITING)

    @rule(name=st.sampled_from("LTUW"), first_step=st.none() | st.integers(2, 120), chosen=st.booleans())
    def place(self, name: str, first_step: int | None, chosen: bool) -> None:
        try:
            self.world.table.place_order(
                name, f"order {self.orders}", self.world.now + 20 * S, first_step, chosen=chosen
            )
        except OrderRefused:
            return
        self.orders += 1

    @rule(name=st.sampled_from("LTUW"))
    def withdraw(self, name: str) -> None:
        self.withdrawn += self.world.table.withdraw_order(name)

    @rule(seconds=st.integers(0, 30))
    def pass_time(self, seconds: int) -> None:
        self.world.now += seconds * S

    @rule()
    def expire(self) -> None:
        self.world.table.expire()

    @rule(name=st.sampled_from("LTUW"))
    def end(self, name: str) -> None:
        self.world.table.record_exit(name)

    @rule(name=st.sampled_from("TU"))
    def close_agent(self, name: str) -> None:
        self.world.table.record_agent_exit(name, f"/run/fp/fleetprofagent{name}")

    @precondition(lambda self: self.orders)
    @invariant()
    def every_order_ends_at_most_once(self) -> None:
        delivered, expired = self.world.events_of(Delivered), self.world.events_of(Expired)
        texts = [config for _, config in self.world.configs]
        assert len(texts) == len(set(texts)) == len(delivered)
        assert len(delivered) + len(expired) + self.withdrawn <= self.orders

    @invariant()
    def nobody_below_a_trainer_or_above_one_is_served(self) -> None:
        views = {view.process_id: view for view in self.world.table.snapshot()}
        stepped = {name for name in "TU" if name in views and views[name].has_agent}
        if stepped and "L" in views:
            assert views["L"].role is Role.LAUNCHER
        if "T" in stepped and "W" in views:
            assert views["W"].role is Role.WORKER
        for view in views.values():
            if view.role in (Role.LAUNCHER, Role.WORKER):
                assert not view.candidate

    @invariant()
    def addresses_and_records_agree(self) -> None:
        index = self.world.table.processes
        for process in index:
            assert index.get(process.process_id) is process
            assert process.client is not None or process.agent is not None
            assert process.client is None or index.of_client(process.client.address) is process
            assert process.agent is None or index.of_agent(process.agent.address) is process
        clients = {process.client.address for process in index if process.client is not None}
        agents = {process.agent.address for process in index if process.agent is not None}
        assert {address for address in self.world.clients if index.of_client(address) is not None} == clients
        assert {address for address in self.world.hellos if index.of_agent(address) is not None} == agents


Anything.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnything = Anything.TestCase
