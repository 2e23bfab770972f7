"""A communication hook for PyTorch's DistributedDataParallel: sends gradients as messages of a codec.

g is a bucket of gradients at process i. r_i is the error feedback of process i: the part of the gradients that its messages
so far have not transferred (Seide et al. 2014; Karimireddy et al. 2019). C(m) is the decoded message m.

    hook, for each bucket     v = g + r_i;  m_i = encode(v);  start all_gather of [length | m_i | padding]
    hook, for the last        wait for all buckets; gather the rest of messages that were longer than the padding;
    bucket                    r_i = v - C(m_i);  g = (C(m_0) + C(m_1) + ...) / N

All processes add all messages in the same order, so that their gradients are equal, bit for bit. A message is padded to a
little more than the longest message of the step before, which all processes know. Therefore a bucket needs one
collective, and a second one only if a message is longer than its padded size. Collectives are started only on the
thread of the backward pass, because all processes must start them in the same order. Callbacks of futures have no fixed
order.

If a gradient is not finite, its process sends an empty message, and all processes get NaN, as without a hook. r_i is then
unchanged.
"""
import ctypes
import struct
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from ._lib import NotFiniteError, UsageError
from .codec import Codec

HEAD = struct.Struct("<Q")  # Length of a message, which precedes the message.
SLACK = 32  # A message is padded to the longest one of the step before plus 1 / SLACK of it.


class _Memory:
    """State of a bucket from step to step, while the bucket has the same parameters."""

    def __init__(self, spec: str, parameters: List[torch.Tensor]) -> None:
        self.parameters = parameters  # A reference to a parameter keeps it alive, so that no other tensor gets its id().
        self.sizes = [p.numel() for p in parameters]
        self.n = sum(self.sizes)
        self.codec = Codec(spec, [tuple(p.shape) or (1,) for p in parameters if p.numel() > 0])
        self.left = torch.zeros(self.n)  # Error feedback r_i: gradients that the messages so far have not transferred.
        self.v = torch.zeros(self.n)  # Gradient plus error feedback (g + r_i) while the bucket is being exchanged.
        self.cap = 0  # Bytes of a message that fit in the first collective.

    def is_of(self, parameters: List[torch.Tensor]) -> bool:
        return len(parameters) == len(self.parameters) and all(a is b for a, b in zip(parameters, self.parameters))

    def pieces(self) -> Dict[int, torch.Tensor]:
        """Returns a dict from the id() of each parameter to its part of the error feedback."""
        return {id(p): piece for p, piece in zip(self.parameters, self.left.split(self.sizes))}


class _Flight:
    """A bucket that is being exchanged."""

    def __init__(self, buffer: torch.Tensor, memory: _Memory, message: bytes) -> None:
        self.buffer, self.memory, self.message = buffer, memory, message
        self.future: "torch.futures.Future[torch.Tensor]" = torch.futures.Future()
        self.cap = memory.cap
        self.work: Any = None
        self.parts: List[torch.Tensor] = []


class DdpHook:
    """The hook that ddp_hook() returns, for one DDP module: `module.register_comm_hook(None, hook)`.

    steps       number of backward passes whose gradients were exchanged
    bytes_made  bytes of this process's messages
    bytes_sent  bytes that this process gave to collectives for each other process: messages, lengths and padding

    The hook can be pickled. An unpickled hook has the default process group, and its error feedback starts at 0: gradients
    that the messages before had not transferred are lost.
    """

    __name__ = "hearsay_hook"

    def __init__(self, spec: str, group: Any, seed: int, error_feedback: bool) -> None:
        self.__qualname__ = "hearsay.ddp_hook"  # PyTorch's logger reads __name__ and __qualname__ of a hook.
        self.spec = Codec(spec, 1).spec
        self.group, self.seed, self.error_feedback = group, seed, error_feedback
        self.steps = self.bytes_made = self.bytes_sent = 0
        self._memory: List[_Memory] = []  # State of each bucket, by the index of the bucket.
        self._flights: List[_Flight] = []

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, group=None, _memory=[], _flights=[])

    def __repr__(self) -> str:
        return f"hearsay.ddp_hook({self.spec!r}, seed={self.seed}, error_feedback={self.error_feedback})"

    # The parameter `bucket` and the result have no type, because PyTorch refuses a hook with types other than its own.
    def __call__(self, state: Any, bucket):  # type: ignore[no-untyped-def]
        if bucket.index() == 0:
            self._flights = []  # Frees the buckets of the previous step, which threads of gloo may have used until now.
        self._flights.append(self._begin(bucket))
        future = self._flights[-1].future
        if bucket.is_last():
            self._memory = [one.memory for one in self._flights]
            for one in self._flights:
                self._end(one)
            self.steps += 1
        return future

    def _memory_of(self, index: int, parameters: List[torch.Tensor]) -> _Memory:
        """Returns the state of a bucket. After its first step DDP divides the parameters into other buckets. The error
        feedback of each parameter then moves to the parameter's new bucket.
        """
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
        """Encodes a bucket and starts its collective. The error feedback changes only when all messages have arrived."""
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
        """Starts an all_gather of `room` bytes. Returns the tensors of all processes, and the work to wait for."""
        mine = torch.zeros(room, dtype=torch.uint8)
        ctypes.memmove(mine.data_ptr(), data, len(data))
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size(self.group))]
        self.bytes_sent += room
        return parts, dist.all_gather(parts, mine, group=self.group, async_op=True)

    def _messages(self, flight: _Flight) -> List[bytes]:
        """Waits for the messages of a bucket, and returns them in the order of the ranks."""
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
        """Ends the exchange of a bucket: the gradient becomes the mean of all decoded messages, and the error feedback the
        part that this process's message did not transfer.
        """
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
    """Returns a hook that sends gradients as messages of a codec: `ddp.register_comm_hook(None,
    hearsay.ddp_hook("topk:0.01"))`.

    spec            codec, as in hearsay.Codec, applied to each bucket of gradients; equal at all processes
    group           process group that can gather bytes on the CPU (gloo), the same as DDP's; None: the default group
    seed            seed of random choices, which differ by process, bucket and step
    error_feedback  add the part of a gradient that a message does not transfer to the next gradient. Without
                    error feedback, training with biased codecs stalls

    Supports float32, float16 and bfloat16 gradients on the CPU, with PyTorch 1.13 or later. Needs memory for two float32
    values per parameter.
    """
    return DdpHook(spec, group, seed, error_feedback)
