#!/usr/bin/env python3
"""The models of `troupe bench compute` in PyTorch: what they are compared with.

Needs PyTorch and NumPy. `troupe bench compute --torch ROOT` runs it in a chroot at ROOT. By hand, with Debian's PyTorch,
whose default OpenBLAS has threads of its own that collapse beside OpenMP's:
    OMP_NUM_THREADS=1 LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp \
      python3 torch_compute.py --model gpt --threads 1 --seconds 8
It prints one JSON object. `--losses N --weights FILE.safetensors` trains N steps from the weights in FILE instead, on the
batches that lie there too, and prints the losses.
"""
import argparse, json, os, shutil, statistics, struct, sys, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["gpt", "gpt2", "mlp", "cnn"], required=True)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--seconds", type=float, default=8)
parser.add_argument("--dtype", choices=["f32", "tf32", "bf16"], default="f32")
parser.add_argument("--device", default="cpu")
parser.add_argument("--batch", type=int, default=0)
parser.add_argument("--length", type=int, default=0)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--losses", type=int, default=0)
parser.add_argument("--weights", default="")
parser.add_argument("--ranks", type=int, default=1, help="processes of DistributedDataParallel over Gloo")
parser.add_argument("--sharding", choices=["none", "fsdp"], default="none", help="fsdp: fully_shard (FSDP2) each block or layer")
options = parser.parse_args()

# Ranks are forked before anything has threads; each one forks the next.
rank, meeting_place = 0, tempfile.mkdtemp() if options.ranks > 1 else ""
while rank < options.ranks - 1 and os.fork() == 0:
    rank += 1

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(options.threads)
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = options.dtype == "tf32"
device = torch.device(options.device)
on_gpu = device.type == "cuda"


def resident_mib(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1024


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.attn["c_attn"](self.ln_1(x)).split(width, 2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary=256, context=128, width=256, layers=4, heads=4, tied=False):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight
            nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x)).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def read_safetensors(path):
    kinds = {"F32": numpy.float32, "I64": numpy.int64, "I32": numpy.int32, "U8": numpy.uint8}
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        body = file.read()
    header.pop("__metadata__", None)
    return {name: torch.from_numpy(numpy.frombuffer(body[entry["data_offsets"][0]:entry["data_offsets"][1]],
                                                    kinds[entry["dtype"]]).reshape(entry["shape"]).copy())
            for name, entry in header.items()}


def own_mib():
    if on_gpu:
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resident_mib("VmHWM") - before_mib


def wait():
    if on_gpu:
        torch.cuda.synchronize(device)


is_gpt = options.model.startswith("gpt")
make, batch, length, classes = {
    "gpt": (GPT, 8, 128, 256),
    "gpt2": (lambda: GPT(50304, 1024, 768, 12, 12, tied=True), 16, 1024, 50304),
    "mlp": (mlp, 256, 1, 10),
    "cnn": (cnn, 128, 1, 10),
}[options.model]
batch, length = options.batch or batch, options.length or length
per_step = batch * length
unit = "tokens_per_s" if is_gpt else "samples_per_s"
model = make()
before_mib = resident_mib("VmRSS")
if options.weights:
    saved = read_safetensors(options.weights)
    inputs, labels = saved.pop("inputs"), saved.pop("labels")
    if options.model == "gpt2":
        saved["lm_head.weight"] = saved["wte.weight"]
    model.load_state_dict(saved)
else:
    shapes = {"mlp": (784,), "cnn": (1, 28, 28)}
    inputs = torch.randint(0, classes, (8, batch, length)) if is_gpt else torch.randn(8, batch, *shapes[options.model])
    labels = torch.randint(0, classes, (8, per_step))
model, inputs, labels = model.to(device), inputs.to(device), labels.to(device)
if options.compile:
    model = torch.compile(model)
if options.ranks > 1:
    import torch.distributed as dist
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting_place}/ranks", rank=rank, world_size=options.ranks)
    if options.sharding == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh(device.type, (options.ranks,))
        for unit_of in model.h if is_gpt else model:
            if any(True for _ in unit_of.parameters()):
                fully_shard(unit_of, mesh=mesh)
        fully_shard(model, mesh=mesh)
    else:
        model = nn.parallel.DistributedDataParallel(model)
if is_gpt:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)


def step(number):
    at = number % inputs.shape[0]
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=options.dtype == "bf16"):
        loss = F.cross_entropy(model(inputs[at]).float(), labels[at].long())
    loss.backward()
    optimizer.step()
    return loss.detach()


if options.losses:
    print(json.dumps({"losses": [float(step(number)) for number in range(options.losses)]}))
    sys.exit()
for number in range(3):
    step(number)
wait()
least = torch.tensor([5])
if options.ranks > 1:  # as many steps on all ranks
    begin = time.perf_counter()
    step(0)
    least[0] = max(5, int(options.seconds / (time.perf_counter() - begin)))
    dist.broadcast(least, 0)
times, end = [], time.perf_counter() + (options.seconds if options.ranks == 1 else 0)
while time.perf_counter() < end or len(times) < int(least):
    begin = time.perf_counter()
    step(len(times))
    wait()
    times.append(time.perf_counter() - begin)
if options.ranks > 1:
    dist.barrier()
    dist.destroy_process_group()
if rank > 0:
    sys.exit()
if options.ranks > 1:
    os.wait()
    shutil.rmtree(meeting_place)
print(json.dumps({unit: options.ranks * per_step / statistics.median(times), "step_s": statistics.median(times), "steps": len(times),
                  "peak_mib": resident_mib("VmHWM"), "own_mib": own_mib(),
                  "version": torch.__version__}))
