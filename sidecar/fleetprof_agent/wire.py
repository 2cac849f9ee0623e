"""The datagrams between agent (in the trainer) and sidecar: JSON over a Unix datagram socket in the shared directory.

Guarantees: pure standard library, Python >= 3.9; `decode` never raises anything but ValueError, whatever the bytes;
a datagram is at most MAX_BYTES. Both sides bind a path in KINETO_IPC_SOCKET_DIR: the sidecar SIDECAR_SOCKET, each
agent AGENT_SOCKET_PREFIX + a random token, and its listener, which answers also while the training hangs,
LISTENER_SOCKET_PREFIX + the same token. Neither ever blocks on a send; a lost datagram is repaired by the next.

agent -> sidecar ("t" is the kind, every message has "v": 1 and "pid")
  hello   ppid, uid, rank, local_rank, world_size, restart_count, role, torch, python, device_kind, device_name,
          device_uuid, host, started_unix_ns, kineto (file name of this process's own dynoconfigclient socket, "" when
          not found). role is TRAINER: sent at the first optimizer step, then every HELLO_EVERY_S with the next step
          report (heals a restarted sidecar). Before that, when PyTorch's import begins (no torch, no kineto) and when
          it is over: role is WAITING, ranks are those of the environment, no device. Launchers and workers import
          PyTorch too, and say no more than that. A PyTorch that is too old to be captured is named at the first.
  steps   step (KinetoStepTracker.current_step()), at_unix_ns, iteration_ns (by the latest ones), fastest_iteration_ns
          (of them), per_iteration (optimizer steps per training iteration), headroom_bytes (what the process may still
          take of memory, read with each hello; 0: not known), own_profile (as in "profile"); at most every
          REPORT_EVERY_S, sooner until iteration_ns is known, and at once in answer to "query"
  profile own_profile: what the job's own torch.profiler is at, "" (nothing), "warmup" or "active"; when it changes
  times   capture, step: [..], end_unix_ns: [..]   ends of optimizer steps around a capture, in chunks, oldest first
  device  capture, columns as in fleetprof_api.samples.DeviceColumns, each a list
  telemetry  at_unix_ns, step (as in "steps", at that time), and of FIELDS and HEALTH_FIELDS of samples.nvml those that
          the device has: the device outside a capture, with an optimizer step every 5 s
  places  capture, first, file: [..], function: [..], line: [..], generator: [..]   lines of the job's Python code,
          numbered from `first`; generator: whether the function is one
  stacks  capture, first, stacks: [[..], ..]   stacks of its training thread, numbered from `first`: of places, the
          innermost first
  thread  capture, columns as in fleetprof_api.samples.ThreadColumns (`stack` names a stack), usable_cores,
          cpu_limit_millicores, torch_threads   what was seen of the training thread, after the window, in chunks
  modules capture, first, name: [..], class_name: [..], file: [..], line: [..], call_file: [..], call_line: [..],
          calls: [..], parameter_bytes: [..], gradient_bytes: [..], optimizer_bytes: [..], output_bytes: [..],
          saved_bytes: [..], rows: [..], indices: [..]   the modules of the marked iteration that were called or have
          parameters, numbered from `first`: dotted name behind the root's class, class, file and line of its forward,
          and of the job's line that called it first ("" and 0: not known), calls, bytes of its own parameters, their
          gradients and the optimizer's state, of what it returned and saved for backward, rows that a root and
          elements that an embedding was given (null: not known); after the window, in chunks
  collections  capture, start_unix_ns: [..], duration_ns: [..]   longer runs of Python's garbage collector meanwhile
  armed   capture          the agent watches over this capture (exit guard on, sampling on)
  dropping   capture       a recording is being dropped, which takes as long as writing it; "cancelled" will follow
  ending     capture       a recording that is to be dropped has its window behind it: Kineto ends and writes it
  cancelled  capture       an empty profile dropped Kineto's pending or running trace
  short   capture, headroom_bytes, needed_bytes, recording   the memory that is left is less than the recording needs:
          it must not begin; with recording true it is being dropped
  memory  capture, before_bytes, peak_bytes, after_bytes     resident memory of the process around the recording, after
          "done" or "cancelled", once what could be given back was
  collectives  query, group: [..], sequence: [..], name: [..], is_p2p: [..], sizes: [..], is_over: [..],
          created_unix_ns: [..], ranks: [..] (of the group)   the latest collectives of each group, from PyTorch's
          flight recorder, in chunks
  threads query, at_unix_ns, step, step_unix_ns (as in "steps"; neither before the first step), name: [..],
          task: [..] (the thread's id at the kernel, 0: not known), is_main: [..], stack: [..],
          call: [..] (what the main thread's innermost line calls, "": not known)   the last datagram of an
          answer to "look"; before it "places" and "stacks" with `query` in place of `capture`
  bye     capture ("" or the one that was running), reason: "exit"   the interpreter ends in the orderly way

sidecar -> agent
  query                    answer with hello and steps at the next optimizer step
  arm     capture, first_step, last_step (or start_unix_ns, end_unix_ns), sample_interval_ns, until_unix_ns,
          memory_needed_bytes (estimate of the recording's peak; 0: not known), ranks (how many record beside it at the
          same time, itself counted, and share what memory is left),
          device_counters (true: the device's profiling counters, GPM, are sampled as well),
          thread_samples (true: the training thread is looked at), measured_step (null, or the step after which modules
          are marked, until last_step)
  cancel  capture, first_step, last_step, end_unix_ns   drop Kineto's trace now
  look    query            to the listener's socket: answer with the stacks of all threads now
  done    capture          the trace is written; send times of the steps until now + after_ns, then rest
          after_ns
"""

import json
from typing import Any, Dict

from fleetprof_agent.errors import pass_on

VERSION = 1
MAX_BYTES = 32768
SIDECAR_SOCKET = "fleetprof"
AGENT_SOCKET_PREFIX = "fleetprofagent"
LISTENER_SOCKET_PREFIX = "fleetproflisten"  # with the token of the agent's socket
REPORT_EVERY_S = 1.0
HELLO_EVERY_S = 10.0
TRAINER = "trainer"  # it steps an optimizer: nothing else of a job does
WAITING = "waiting"
# Made once: json.dumps would make one for each datagram.
_ENCODER = json.JSONEncoder(separators=(",", ":"))
FROM_AGENT = frozenset(
    {"hello", "steps", "profile", "times", "device", "places", "stacks", "thread", "modules"}
    | {"collections", "held", "bye", "telemetry"}
    | {"armed", "dropping", "ending", "cancelled", "short", "memory"}  # of a capture
    | {"collectives", "threads"}  # of a question, with places and stacks
)
TO_AGENT = frozenset({"query", "arm", "cancel", "done", "look"})


def encode(kind: str, **fields: Any) -> bytes:
    """One datagram. Raises ValueError when it would be too long."""
    fields["v"] = VERSION
    fields["t"] = kind
    data = _ENCODER.encode(fields).encode()
    if len(data) > MAX_BYTES:
        raise ValueError("datagram of %d bytes, at most %d" % (len(data), MAX_BYTES))
    return data


def decode(data: bytes, kinds: "frozenset[str]") -> Dict[str, Any]:
    """The fields of one datagram of one of `kinds`. Raises ValueError for anything else."""
    if len(data) > MAX_BYTES:
        raise ValueError("datagram too long")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        pass_on(error)
        raise ValueError("not JSON: %s" % error) from None
    if not isinstance(fields, dict) or fields.get("v") != VERSION:
        raise ValueError("not version %d" % VERSION)
    if fields.get("t") not in kinds:
        raise ValueError("unknown kind %r" % (fields.get("t"),))
    return fields
