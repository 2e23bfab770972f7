"""The keyword arguments of Peer, local(), simulate() and torchrun(): names, types and error messages.

RunOptions are the options of libhearsay, which hearsay_option_at() lists. A test compares RunOptions with the library,
README.md and the keys of the run in peer/docs/flags.md. None stands for the default: the run's if the peer joins a run,
else the library's.
"""
import difflib
import inspect
import os
import re
from typing import Any, Callable, Dict, Iterable, Literal, Mapping, Optional, Sequence, Tuple, Type, TypedDict, TypeVar, Union

Path = Union[str, os.PathLike]  # type: ignore[type-arg]
Words = Union[str, Sequence[str]]
Count = Union[int, str]
Seconds = Union[float, str]


class RunOptions(TypedDict, total=False):
    """The options of libhearsay, with _ in place of -."""

    # The run: the same for all peers. A peer that joins a run may leave the options of the run out.
    rounds: Optional[int]
    local_steps: Optional[Count]
    min_peers: Optional[int]
    topology: Optional[str]
    compress: Optional[str]
    drift_target: Optional[float]
    mixer: Optional[Literal['choco', 'average', 'dpsgd', 'allreduce', 'gossip', 'sma', 'ps']]
    gamma: Union[float, str, None]
    policy: Optional[str]
    overlap: Optional[Count]
    outer: Optional[str]
    trigger: Optional[float]
    post_local: Optional[int]
    one_step_last: Optional[int]
    final_drift: Optional[float]
    final_compress: Optional[str]
    final_topology: Optional[str]
    quorum: Optional[float]
    seed: Optional[int]
    byzantine: Optional[int]
    max_pull: Optional[float]
    collective: Optional[Literal['ring', 'butterfly', 'tree', 'round-robin', 'master-worker', 'all-to-all']]
    centre_momentum: Optional[float]
    error_feedback: Optional[bool]
    factor_masking: Optional[bool]
    # Options of this peer.
    key: Optional[Path]
    bootstrap: Optional[Words]
    listen: Optional[str]
    name: Optional[str]
    initial: Optional[bool]
    shard: Optional[str]
    out: Optional[Path]
    checkpoint: Optional[Seconds]
    evaluate_every: Optional[int]
    evaluate_samples: Optional[int]
    metrics: Union[str, int, None]
    advertise: Optional[Words]
    identity: Optional[Path]
    members: Optional[Path]
    token: Optional[str]
    member_ttl: Optional[Seconds]
    quorum_timeout: Optional[float]
    straggler_timeout: Optional[float]
    bandwidth: Optional[str]
    # model= says that the tensors are a built-in model, so that `hearsay peer` can join the run. The other options need model=.
    model: Optional[str]
    data: Optional[str]
    norm: Optional[Literal['batch', 'group', 'layer']]
    init: Optional[str]
    augment: Optional[str]
    partition: Optional[str]
    batch: Optional[int]
    learners: Optional[int]
    learner_momentum: Optional[float]
    optimiser: Optional[Literal['sgd', 'adam', 'adamw']]
    lr: Optional[float]
    momentum: Optional[float]
    momentum_kind: Optional[Literal['local', 'qg', 'decentlam', 'averaged', 'tracking', 'auto']]
    beta2: Optional[float]
    nesterov: Optional[bool]
    label_smoothing: Optional[float]
    clip: Optional[float]
    weight_decay: Optional[float]
    warmup: Optional[Count]
    schedule: Optional[Literal['cosine', 'step', 'constant']]


class PeerOptions(RunOptions, total=False):
    """RunOptions and the arguments of the Peer itself. local(), simulate() and torchrun() pass all of them to the Peer."""

    buffers: Optional[Mapping[str, Any]]
    options: str
    timeout: Optional[float]
    evaluate: Optional[Callable[..., Any]]
    on_note: Optional[Callable[[int, str], None]]
    on_round: Optional[Callable[[str, int, Dict[str, Any]], Any]]
    keep: Optional[Mapping[str, Any]]
    skip: Sequence[str]
    progress: Optional[bool]


RUN_NAMES = frozenset(RunOptions.__annotations__)
PEER_NAMES = frozenset(PeerOptions.__annotations__)
# Former names of options, which the library still accepts.
FORMER = frozenset(("tolerate", "pull", "forget", "patience", "worker_limit", "uplink", "skew"))
# Options of a simulated peer, which has no socket, key or file.
SIMULATED = PEER_NAMES - {"key", "bootstrap", "listen", "name", "out", "checkpoint", "metrics", "advertise", "identity", "members", "token",
                          "member_ttl", "bandwidth"}
Function = TypeVar("Function", bound=Callable[..., Any])


def check(where: str, given: Iterable[str], names: Iterable[str], what: str = "keyword argument", error: Type[Exception] = TypeError) -> None:
    """Raises `error` if a name in `given` is not in `names`. The message has the nearest known name."""
    known = sorted(names)
    for name in given:
        plain = name.replace("-", "_")
        if plain in known or plain in FORMER:
            continue
        if plain in PEER_NAMES:
            raise error(f"{where}: found the {what} {name!r}, which a simulated peer does not take; expected one of {', '.join(known)}")
        near = difflib.get_close_matches(plain, known, 1, 0.7)
        meant = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
        raise error(f"{where}: found the unknown {what} {name!r}, {meant}")


def check_own(where: str, **given: Any) -> None:
    """Raises TypeError if an argument of the Peer, not of the library, does not have the type in the signature."""
    kinds: Dict[str, Tuple[Callable[[Any], bool], str]] = {
        "evaluate": (callable, "a function or None"),
        "on_note": (callable, "a function or None"),
        "on_round": (callable, "a function or None"),
        "keep": (lambda x: isinstance(x, Mapping), "a dict of name -> object, or None"),
        "options": (lambda x: isinstance(x, str), 'text such as "topology=ring"'),
        "skip": (lambda x: all(isinstance(one, str) for one in x), "a pattern, or a list of them"),
    }
    for name, value in given.items():
        fits, expected = kinds[name]
        try:
            good = value is None or fits(value)
        except TypeError:  # fits() failed, because the value is not iterable.
            good = False
        if not good:
            raise TypeError(f"{where}: {name}: found {value!r:.60}, expected {expected}")


def listed(names: Any = PeerOptions) -> Callable[[Function], Function]:
    """Returns a decorator for a function that takes Unpack[names], so that help() and completion list each keyword argument."""
    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD and one.name[0] != "_"]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
                for name, kind in names.__annotations__.items() if name not in {one.name for one in own}]
        function.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        return function

    return decorate


FLAG = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


def speak(sentence: str) -> str:
    """Returns a message of the library with keyword arguments in place of flags: --min-peers becomes min_peers."""
    def keyword(found: "re.Match[str]") -> str:
        name = found.group(1).replace("-", "_")
        return name if name in RUN_NAMES else found.group(0)

    return FLAG.sub(keyword, sentence.replace("--fresh starts the run again", "another directory as out begins again"))
