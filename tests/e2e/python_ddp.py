"""The part of tests/e2e/python_codec.sh that tests hearsay.ddp_hook: python_ddp.py FILE.

Three processes, which find each other by FILE, run each test function below; rank 0 prints the names of the finished ones.
Three processes are needed, because a sum of two values is the same in either order.
"""
import pickle
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import hearsay

PEERS = 3


def module_of(hook):
    """Returns a DDP module of three layers, with several buckets after its first step. Every process has other data."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(40, 120), torch.nn.ReLU(), torch.nn.Linear(120, 150), torch.nn.ReLU(), torch.nn.Linear(150, 10)]
    dist._DEFAULT_FIRST_BUCKET_BYTES = 4000
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.05)
    if hook is not None:
        ddp.register_comm_hook(None, hook)
    data = torch.Generator().manual_seed(dist.get_rank())
    return ddp, torch.randn(64, 40, generator=data), torch.randint(0, 10, (64,), generator=data)


def backward(ddp, x, y, scale=1.0):
    ddp.zero_grad()
    loss = scale * torch.nn.functional.cross_entropy(ddp(x), y)
    loss.backward()
    return loss


def flat(ddp):
    return torch.cat([p.grad.flatten() for p in ddp.parameters()])


def counted(hook):
    """Makes the hook record its collectives: returns a list that gets an entry for each collective operation."""
    gather, calls = hook._gather, []
    hook._gather = lambda *data: calls.append(data) or gather(*data)
    return calls


def everybodys(v):
    out = [torch.empty_like(v) for _ in range(PEERS)]
    dist.all_gather(out, v)
    return out


def plain():
    """With the codec none, the hook gives the same gradients as DDP without a hook. Once the buckets are known, the hook
    makes one collective per bucket."""
    (a, x, y), (b, _, _) = module_of(hook := hearsay.ddp_hook("none")), module_of(None)
    calls = counted(hook)
    for _ in range(4):
        calls.clear()
        backward(a, x, y), backward(b, x, y)
        torch.testing.assert_close(flat(a), flat(b), rtol=1e-5, atol=1e-8)
        for ddp in (a, b):
            torch.optim.SGD(ddp.parameters(), 0.1).step()
    assert len(calls) == len(hook._memory) >= 2, f"{len(calls)} collectives of {len(hook._memory)} buckets"


def feedback():
    """Error feedback loses nothing: after T steps, the applied gradients plus the stored errors equal the sum of T gradients,
    even if DDP changes its buckets."""
    (a, x, y), (b, _, _) = module_of(None), module_of(hook := hearsay.ddp_hook("topk:0.05+qsgd:4"))
    backward(a, x, y)
    whole, sum_of, buckets = flat(a), 0, set()
    for step in range(6):
        backward(b, x, y)
        sum_of = sum_of + flat(b)
        buckets.add(len(hook._memory))
        assert all(torch.equal(flat(b), one) for one in everybodys(flat(b)))
        left = {key: piece for one in hook._memory for key, piece in one.pieces().items()}
        left = torch.cat([left[id(p)] for p in b.parameters()])
        left = sum(everybodys(left)) / PEERS
        found = (sum_of + left - (step + 1) * whole).abs().max() / whole.abs().max()
        assert found <= 1e-5, (step, found)
        assert left.norm() > 0.1 * whole.norm()
    assert len(buckets) == 2 and max(buckets) >= 2, f"buckets were cut into {buckets}"
    assert hook.steps == 6 and hook.bytes_made < 6 * 4 * len(whole) / 50
    assert hook.bytes_made < hook.bytes_sent < 1.2 * hook.bytes_made + 8 * 6 * 2 * max(buckets)


def growing():
    """A message that is longer than the padded size of the first collective is sent completely, in two collectives."""
    (a, x, y), (b, _, _) = module_of(hook := hearsay.ddp_hook("thr:0.001")), module_of(None)
    for scale in (1e-2, 1e-2, 1e-1):
        calls = counted(hook)
        backward(a, x, y, scale), backward(b, x, y, scale)
        assert (flat(a) - flat(b)).abs().max() < 0.003
    assert len(calls) == 2 * len(hook._memory), f"{len(calls)} collectives of {len(hook._memory)} buckets"
    assert flat(a).abs().max() > 0.003


def without_feedback():
    """Without error feedback, the same gradient gives the same message every time."""
    ddp, x, y = module_of(hearsay.ddp_hook("topk:0.05", error_feedback=False))
    backward(ddp, x, y)  # DDP changes its buckets after this step.
    backward(ddp, x, y)
    first = flat(ddp)
    backward(ddp, x, y)
    assert torch.equal(first, flat(ddp)) and 0 < (first != 0).sum() < 0.16 * len(first)


def not_finite():
    """A NaN at one process gives NaN at all processes, and does not change the stored errors of error feedback."""
    ddp, x, y = module_of(hook := hearsay.ddp_hook("topk:0.05"))
    backward(ddp, x, y), backward(ddp, x, y)
    left = [one.left.clone() for one in hook._memory]
    backward(ddp, x * float("nan") if dist.get_rank() == 1 else x, y)
    assert flat(ddp).isnan().all()
    assert all(torch.equal(a, b.left) for a, b in zip(left, hook._memory))
    backward(ddp, x, y)
    assert flat(ddp).isfinite().all()


def pickled():
    ddp, x, y = module_of(hook := hearsay.ddp_hook("qsgd:4,round=sr", seed=7))
    backward(ddp, x, y)
    again = pickle.loads(pickle.dumps(hook))
    assert (again.spec, again.seed, again.steps) == (hook.spec, 7, 1) and again._memory == [] != hook._memory
    ddp, x, y = module_of(again)
    backward(ddp, x, y)
    assert again.steps == 2


def learns():
    """With error feedback, a model learns although only 5 % of the gradient values are sent."""
    ddp, x, y = module_of(hearsay.ddp_hook("topk:0.05"))
    optimiser = torch.optim.SGD(ddp.parameters(), 0.1)
    first = float(backward(ddp, x, y).detach())
    for _ in range(150):
        loss = float(backward(ddp, x, y).detach())
        optimiser.step()
    assert loss < 0.7 * first, (first, loss)


PARTS = dict(plain=plain, feedback=feedback, growing=growing, without_feedback=without_feedback, not_finite=not_finite,
             pickled=pickled, learns=learns)


def one(rank, parts, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=PEERS)
    for part in parts:
        PARTS[part]()
        dist.barrier()
        if rank == 0:
            print(part, flush=True)
    dist.destroy_process_group()  # Joins the threads of gloo, which may still be running.


if __name__ == "__main__":
    mp.spawn(one, (list(PARTS), sys.argv[1]), nprocs=PEERS)
