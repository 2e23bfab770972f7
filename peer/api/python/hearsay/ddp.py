"""A communication hook for PyTorch's DistributedDataParallel: gradients go out as a codec's messages.

A bucket of gradients g at process i, with what its earlier messages left out, r_i (error feedback: Seide
et al. 2014; Karimireddy et al. 2019):

    hook, bucket by bucket    v = g + r_i;  m_i = encode(v)          all_gather of [length | m_i | padding]
    hook, of the last bucket  wait for all of them; those that were longer than the padding: the rest
                              r_i = v - C(m_i);  g = (C(m_0) + C(m_1) + ...) / N

All processes add all messages in one order, so that their gradients have the same bits. Padding is to a
little more than the longest message of the step before, as all processes saw it: one collective a bucket,
and a second one only where messages grew. Collectives begin on the thread of the backward pass alone: they
must begin in one order everywhere, which callbacks of futures have not.

Where a gradient is not finite, its process sends the empty message, and all processes get NaN, as
without a hook; what was left out stays as it was.
"""
import ctypes
import struct
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from ._lib import NotFiniteError, UsageError
from .codec import Codec

HEAD = struct.Struct("<Q")  # The length of a message, in front of it.
SLACK = 32  # A message may be longer by one part in so many than the longest of the step before.


class _Memory:
    """What lasts of one bucket, from step to step, for as long as it has the same parameters."""

    def __init__(self, spec: str, parameters: List[torch.Tensor]) -> None:
        self.parameters = parameters  # Held, so that no other tensor gets their id().
        self.sizes = [p.numel() for p in parameters]
        self.n = sum(self.sizes)
        self.codec = Codec(spec, [tuple(p.shape) or (1,) for p in parameters if p.numel() > 0])
        self.left = torch.zeros(self.n)  # r: what the messages so far have left out.
        self.v = torch.zeros(self.n)  # g + r, while the bucket is under way.
        self.cap = 0  # Bytes of a message that the first collective has room for.

    def is_of(self, parameters: List[torch.Tensor]) -> bool:
        return len(parameters) == len(self.parameters) and all(a is b for a, b in zip(parameters, self.parameters))

    def pieces(self) -> Dict[int, torch.Tensor]:
        """Each parameter's part of `left`, by the parameter's id()."""
        return {id(p): piece for p, piece in zip(self.parameters, self.left.split(self.sizes))}


class _Flight:
    """A bucket under way."""

    def __init__(self, buffer: torch.Tensor, memory: _Memory, message: bytes) -> None:
        self.buffer, self.memory, self.message = buffer, memory, message
        self.future: "torch.futures.Future[torch.Tensor]" = torch.futures.Future()
        self.cap = memory.cap
        self.work: Any = None
        self.parts: List[torch.Tensor] = []


class DdpHook:
    """What ddp_hook() returns, for one DDP module: `module.register_comm_hook(None, hook)`.

    steps       backward passes whose gradients were exchanged
    bytes_made  bytes of this process's messages
    bytes_sent  bytes that it gave to collectives, for each other process: messages, lengths and padding

    It can be pickled, but comes back with the default group, and with nothing left out: what that
    was is lost, as if the last messages had been sent without error feedback.
    """

    __name__ = "hearsay_hook"

    def __init__(self, spec: str, group: Any, seed: int, error_feedback: bool) -> None:
        self.__qualname__ = "hearsay.ddp_hook"  # PyTorch's logger asks for both names.
        self.spec = Codec(spec, 1).spec
        self.group, self.seed, self.error_feedback = group, seed, error_feedback
        self.steps = self.bytes_made = self.bytes_sent = 0
        self._memory: List[_Memory] = []  # By the bucket's index.
        self._flights: List[_Flight] = []

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, group=None, _memory=[], _flights=[])

    def __repr__(self) -> str:
        return f"hearsay.ddp_hook({self.spec!r}, seed={self.seed}, error_feedback={self.error_feedback})"

    def __call__(self, state: Any, bucket):  # type: ignore[no-untyped-def]  # PyTorch compares annotations with types: it gets none.
        if bucket.index() == 0:
            self._flights = []  # Kept until now: gloo's threads may have held the tensors a little longer.
        self._flights.append(self._begin(bucket))
        future = self._flights[-1].future
        if bucket.is_last():
            self._memory = [one.memory for one in self._flights]
            for one in self._flights:
                self._end(one)
            self.steps += 1
        return future

    def _memory_of(self, index: int, parameters: List[torch.Tensor]) -> _Memory:
        """The bucket's. DDP cuts buckets anew after its first step: then each parameter takes along what it has."""
        if index < len(self._memory) and self._memory[index].is_of(parameters):
            return self._memory[index]
        fresh = _Memory(self.spec, parameters)
        before: Dict[int, torch.Tensor] = {}
        for one in self._memory:
            before.update(one.pieces())
        for key, piece in fresh.pieces().items():
            if key in before:
                piece.copy_(before[key])
        return fresh

    def _begin(self, bucket: Any) -> _Flight:
        """Encode the bucket and start its collective. What was left out changes only when that has arrived."""
        buffer = bucket.buffer()
        memory = self._memory_of(bucket.index(), list(bucket.parameters()))
        if buffer.device.type != "cpu":
            raise TypeError(f"hearsay.ddp_hook: found gradients on {buffer.device}, expected cpu")
        if buffer.numel() != memory.n:
            raise ValueError(f"hearsay.ddp_hook: found {buffer.numel()} gradients, expected {memory.n}")
        torch.add(buffer, memory.left, out=memory.v)
        rank = dist.get_rank(self.group)
        try:
            seed = (self.seed + (rank << 48) + (bucket.index() << 32)) % 2**64
            message = memory.codec.encode(memory.v, None, seed, self.steps)
        except NotFiniteError:
            message = b""
        self.bytes_made += len(message)
        flight = _Flight(buffer, memory, message)
        flight.parts, flight.work = self._gather(HEAD.pack(len(message)) + message[:flight.cap], HEAD.size + flight.cap)
        return flight

    def _gather(self, data: bytes, room: int) -> Tuple[List[torch.Tensor], Any]:
        """Everybody's `room` bytes, once the work that is returned, too, is done."""
        mine = torch.zeros(room, dtype=torch.uint8)
        ctypes.memmove(mine.data_ptr(), data, len(data))
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size(self.group))]
        self.bytes_sent += room
        return parts, dist.all_gather(parts, mine, group=self.group, async_op=True)

    def _messages(self, flight: _Flight) -> List[bytes]:
        """Everybody's, in the order of the processes."""
        flight.work.wait()
        heads = [ctypes.string_at(part.data_ptr(), part.numel()) for part in flight.parts]
        lengths = [HEAD.unpack_from(head)[0] for head in heads]
        messages = [head[HEAD.size:HEAD.size + length] for head, length in zip(heads, lengths)]
        longest = max(lengths)
        if longest > flight.memory.codec.bound:
            raise UsageError(f"found a message of {longest} bytes, expected {flight.memory.codec.bound} at most: "
                             "have all processes the same spec and model?")
        if longest > flight.cap:
            parts, work = self._gather(flight.message[flight.cap:], longest - flight.cap)
            work.wait()
            messages = [message + ctypes.string_at(part.data_ptr(), max(0, length - flight.cap))
                        for message, part, length in zip(messages, parts, lengths)]
        flight.memory.cap = min(longest + longest // SLACK, flight.memory.codec.bound)
        return messages

    def _end(self, flight: _Flight) -> None:
        """Wait for the messages: their mean is the gradient, and what ours left out stays for the next."""
        memory, buffer = flight.memory, flight.buffer
        messages = self._messages(flight)
        if all(messages):
            mean = buffer if buffer.dtype == torch.float32 else torch.empty(memory.n)
            if self.error_feedback:
                memory.codec.add(flight.message, mean.zero_())
                torch.sub(memory.v, mean, out=memory.left)
            mean.zero_()
            for message in messages:
                memory.codec.add(message, mean)
            buffer.copy_(mean.div_(len(messages)))
        else:
            buffer.fill_(float("nan"))
        flight.future.set_result(buffer)


def ddp_hook(spec: str, *, group: Optional[Any] = None, seed: int = 0,
             error_feedback: bool = True) -> DdpHook:
    """A hook that sends gradients as messages of a codec: `ddp.register_comm_hook(None, hearsay.ddp_hook("topk:0.01"))`.

    spec            as of hearsay.Codec, for each bucket of gradients by itself; equal at all processes
    group           a process group that gathers bytes on the CPU (gloo), the one that DDP has; None: the default
    seed            of random choices, which differ by process, bucket and step
    error_feedback  what a message leaves out is added to the next gradient; without it biased codecs stall

    For float32, float16 or bfloat16 gradients on the CPU, PyTorch 1.13 or later. It holds two float32 a
    parameter.
    """
    return DdpHook(spec, group, seed, error_feedback)
