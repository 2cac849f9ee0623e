"""Global hooks of torch.nn that put each module's name into Kineto's trace, for the length of one iteration.

A mark is a range named `fleetprof.module:NUMBER NAME` around a module's forward, on the thread that runs it. Two marks
without length, `fleetprof.marks begin` and `fleetprof.marks end`, bound the time in which modules are marked.

Guarantees: nothing is hooked before `begin` or after `end`; no exception of ours reaches the training, and the first
one ends the marks; a module's inputs and outputs are what they were; hooks that are no longer wanted (the capture is
over, the process has forked) do nothing, and the next call of a module or the next step takes them off. Dynamo neither
traces the hooks nor sees them: the first compilation meanwhile ends the marks before it begins. Not seen: modules whose
`forward` is called directly, ScriptModules inside another one, what a CUDA graph replays, the inside of compiled code.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable

from fleetprof_agent.errors import pass_on, report_error
from fleetprof_agent.modules.compiler import hide, run_hidden
from fleetprof_agent.modules.forward_pass import ForwardPass
from fleetprof_agent.modules.table import MARK_PREFIX, ModuleEntry, ModuleTable

BEGIN = MARK_PREFIX + "marks begin"
END = MARK_PREFIX + "marks end"
# Ranges whose thread never came back to end them: one that ended in another recording would write into freed memory.
_NEVER_ENDED: list[Any] = []


class ModuleMarks:
    """The marks of one iteration; `begin` and `end` are called in the thread that trains.

    Raises AttributeError, KeyError where PyTorch has not what they need.
    """

    def __init__(self, torch: Any) -> None:
        self.is_on = False
        self.table = ModuleTable(torch)
        self._range: Any = torch._C._profiler._RecordFunctionFast
        self._modules: Any = sys.modules["torch.nn.modules.module"]
        self._stacks: dict[int, list[tuple[int, ModuleEntry, Any, ForwardPass | None]]] = {}  # by thread
        self._pid = os.getpid()
        self._handles: list[Any] = []
        self._restore: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Modules are marked from now on."""
        self._mark(BEGIN)  # first: what this takes is no part of the iteration before
        enter, leave = self._make_hooks()
        own = self._take_off, self.table.add_output, ForwardPass.count_input
        hide(enter, leave, *(getattr(function, "__func__", function) for function in own))
        self._watch_compiler()
        self._keep_quiet()
        self.is_on = True
        self._handles.append(self._modules.register_module_forward_pre_hook(enter))
        self._handles.append(self._modules.register_module_forward_hook(leave, always_call=True))

    def end(self) -> None:
        """Takes the hooks off; repeating it changes nothing."""
        was_on = self.is_on
        self._take_off()
        if was_on:
            self._mark(END)

    def read_optimizer(self, optimizer: Any) -> None:
        """Counts the bytes that an optimizer holds, at the end of its step."""
        self._try(self.table.optimizers.read, optimizer)

    def weigh(self) -> None:
        """Counts the bytes of the modules' parameters and gradients, once the marks have ended."""
        self._try(self.table.weigh)

    def stop(self) -> None:
        """No module is marked any more; from any thread, and in a forked child."""
        self.is_on = False

    def _try(self, function: Callable[..., None], *args: Any) -> bool:
        """Calls it; what is not to be had then is not told, and costs no mark."""
        try:
            run_hidden(function, *args)
        except Exception as error:
            pass_on(error)
            report_error()
            return False
        return True

    def _make_hooks(self) -> tuple[Any, Any]:
        table, stacks, fast_range = self.table, self._stacks, self._range
        entries, get_ident = table.entries, threading.get_ident

        def enter_module(module: Any, args: Any) -> None:
            try:
                if not self.is_on:
                    run_hidden(self._take_off)
                    return
                thread = get_ident()
                stack = stacks.get(thread)
                if stack is None:
                    stack = stacks[thread] = []
                known = entries.get(id(module))
                if known is not None and known[1].calls and known[0]() is module:
                    entry = known[1]
                else:
                    entry = run_hidden(table.meet, module, stack[-1][1] if stack else None)
                    if entry is None:
                        return
                entry.calls += 1
                current = stack[-1][3] if stack else run_hidden(table.begin_pass, entry)
                if current is not None:
                    current.events.append((current.next_number(), entry))
                    if current.wants_rows or entry.looks_up:
                        current.count_input(entry, args)
                mark = fast_range(entry.title)
                mark.__enter__()
                stack.append((id(module), entry, mark, current))
            except Exception as error:
                self.is_on = False
                pass_on(error)
                report_error()

        def leave_module(module: Any, _args: Any, output: Any) -> None:
            try:
                stack = stacks.get(get_ident())
                if not stack:
                    return
                own = id(module)
                if stack[-1][0] != own:
                    if all(row[0] != own for row in stack):
                        return  # it was not marked
                    while stack[-1][0] != own:  # they were left by an exception that no hook hears of
                        stack.pop()[2].__exit__(None, None, None)
                _, entry, mark, current = stack.pop()
                mark.__exit__(None, None, None)
                table.add_output(entry, output)
                if current is None:
                    return
                if stack:
                    current.events.append((current.next_number(), stack[-1][1]))
                elif not self._try(table.end_pass, current, output):
                    table.forget_saved()
            except Exception as error:
                self.is_on = False
                pass_on(error)
                report_error()

        return enter_module, leave_module

    def _take_off(self) -> None:
        self.is_on = False
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        restore, self._restore = self._restore, []
        for one in restore:
            one()
        own = self._stacks.pop(threading.get_ident(), []) if os.getpid() == self._pid else []
        while own:
            own.pop()[2].__exit__(None, None, None)
        _NEVER_ENDED.extend(stack for stack in self._stacks.values() if stack)

    def _watch_compiler(self) -> None:
        """The first compilation ends the marks: compiled code must not know of them."""
        handler: Any = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        if handler is None:
            return

        def stop_marks(_args: Any) -> None:
            try:
                self.end()
            except Exception as error:
                pass_on(error)
                report_error()

        def remove() -> None:
            # Another list: PyTorch may be going through this one.
            handler.start_callbacks = [one for one in handler.start_callbacks if one is not stop_marks]

        handler.start_callbacks = [*handler.start_callbacks, stop_marks]
        self._restore.append(remove)

    def _keep_quiet(self) -> None:
        """A compiled module warns of global hooks, and a warning may be an error in a job: it is not asked of ours."""
        modules = self._modules
        original = getattr(modules, "_has_any_global_hook", None)
        if original is None:
            return
        ours = {"_global_forward_pre_hooks", "_global_forward_hooks", "_global_forward_hooks_always_called"}
        names = [name for name in original.__code__.co_names if name.startswith("_global_")]

        def _has_any_global_hook() -> bool:
            return any(len(getattr(modules, name)) > (name in ours and bool(self._handles)) for name in names)

        def put_back() -> None:
            if modules._has_any_global_hook is _has_any_global_hook:
                modules._has_any_global_hook = original

        modules._has_any_global_hook = _has_any_global_hook
        self._restore.append(put_back)

    def _mark(self, name: str) -> None:
        mark = self._range(name)
        mark.__enter__()
        mark.__exit__(None, None, None)
