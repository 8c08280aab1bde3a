#!/usr/bin/env python3
"""The kernels of `troupe bench kernels` in PyTorch: what they are compared with.

`troupe bench kernels --torch ROOT` runs it in a chroot at ROOT. It reads requests from its standard input, one JSON object a line:
    {"kernel": "softmax", "extents": [1024, 256], "dtype": "f32"}
and answers each with the seconds that a run took on average over some milliseconds, or with null if PyTorch has no such kernel:
    {"seconds": 0.00012}
Gradients call the operators behind autograd, so that nothing but the kernel is measured.
"""
import argparse, json, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=1)
options = parser.parse_args()

import torch
import torch.nn.functional as F

torch.set_num_threads(options.threads)
torch.manual_seed(0)
torch.set_grad_enabled(False)
aten = torch.ops.aten


def values(extents, dtype):
    return (torch.rand(extents) * 2 - 1).to(dtype)


def activation(forward, backward):
    """`backward` is given dy and x."""
    def make(extents, dtype):
        x, dy = values(extents, dtype), values(extents, dtype)
        return {"": lambda: forward(x), " gradient": lambda: backward(dy, x)}
    return make


def softmax(extents, dtype):
    x, dy = values(extents, dtype), values(extents, dtype)
    y = torch.softmax(x, -1)
    return {"": lambda: torch.softmax(x, -1), " gradient": lambda: aten._softmax_backward_data(dy, y, -1, dtype)}


def log_softmax(extents, dtype):
    x, dy = values(extents, dtype), values(extents, dtype)
    y = torch.log_softmax(x, -1)
    return {"": lambda: torch.log_softmax(x, -1), " gradient": lambda: aten._log_softmax_backward_data(dy, y, -1, dtype)}


def cross_entropy(extents, dtype):
    x, labels = values(extents, dtype), torch.randint(0, extents[-1], (extents[0],))
    y = torch.log_softmax(x, -1)
    one, weight = torch.tensor(1.0, dtype=dtype), torch.tensor(0.0, dtype=dtype)

    def gradient():
        dy = aten.nll_loss_backward(one, y, labels, None, 2, -100, weight)
        return aten._log_softmax_backward_data(dy, y, -1, dtype)
    return {"": lambda: F.cross_entropy(x, labels, reduction="sum"), " gradient": gradient}


def mse_loss(extents, dtype):
    x, y = values(extents, dtype), values(extents, dtype)
    one = torch.tensor(1.0, dtype=dtype)
    return {"": lambda: F.mse_loss(x, y, reduction="sum"), " gradient": lambda: aten.mse_loss_backward(one, x, y, 2)}


def layer_norm(extents, dtype):
    x, dy = values(extents, dtype), values(extents, dtype)
    gamma, beta = values(extents[-1:], dtype), values(extents[-1:], dtype)
    _, mean, rstd = torch.native_layer_norm(x, extents[-1:], gamma, beta, 1e-5)

    def backward(*wanted):
        return lambda: aten.native_layer_norm_backward(dy, x, extents[-1:], mean, rstd, gamma, beta, wanted)
    return {"": lambda: F.layer_norm(x, extents[-1:], gamma, beta), " input gradient": backward(True, False, False),
            " weight gradient": backward(False, True, True)}


def rms_norm(extents, dtype):
    x, gamma = values(extents, dtype), values(extents[-1:], dtype)
    return {"": lambda: F.rms_norm(x, extents[-1:], gamma)}


def binary(function, of_b=lambda b: b):
    def make(extents, dtype):
        a, b = values(extents, dtype), of_b(values(extents, dtype))
        return {"": lambda: function(a, b)}
    return make


def unary(function):
    def make(extents, dtype):
        a = values(extents, dtype)
        return {"": lambda: function(a)}
    return make


def embedding(extents, dtype):
    rows, width = extents
    table, dy = values((4096, width), dtype), values(extents, dtype)
    indices = torch.randint(0, 4096, (rows,))
    return {"": lambda: F.embedding(indices, table),
            " weight gradient": lambda: aten.embedding_dense_backward(dy, indices, 4096, -1, False)}


def optimizer_step(make_optimizer):
    def make(extents, dtype):
        weight = torch.zeros(extents).requires_grad_()
        weight.grad = torch.zeros(extents)
        return {"": make_optimizer([weight]).step}
    return make


def scale_all(extents, dtype):
    x, found, factor = values(extents, dtype), torch.zeros(1), torch.full((1,), 0.999)
    return {"": lambda: torch._amp_foreach_non_finite_check_and_unscale_([x], found, factor)}


def global_norm(extents, dtype):
    x = values(extents, dtype)
    return {"": lambda: torch.nn.utils.get_total_norm([x])}


def linear(extents, dtype):
    rows, width = extents
    x, dy, weight, bias = (values(of, dtype) for of in ((rows, width), (rows, 4 * width), (4 * width, width), (4 * width,)))
    return {"": lambda: F.linear(x, weight, bias), " input gradient": lambda: dy @ weight,
            " weight gradient": lambda: (dy.t() @ x, dy.sum(0))}


def bias(extents, dtype):
    dy = values(extents, dtype)
    return {" gradient": lambda: dy.sum(0)}


def attention(extents, dtype):
    batch, length, width = extents
    heads = 4
    q, k, v = (part.view(batch, length, heads, -1).transpose(1, 2) for part in values((batch, length, 3 * width), dtype).split(width, 2))
    dout = values(extents, dtype).view(batch, length, heads, -1).transpose(1, 2)
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)
    return {"": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            " gradient": lambda: aten._scaled_dot_product_flash_attention_for_cpu_backward(dout, q, k, v, out, sums, 0.0, True)}


def conv2d(extents, dtype):
    channels = extents[1]
    x, dy, weight = values(extents, dtype), values(extents, dtype), values((channels, channels, 3, 3), dtype)

    def backward(*wanted):
        return lambda: aten.convolution_backward(dy, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, wanted)
    return {"": lambda: F.conv2d(x, weight, padding=1), " input gradient": backward(True, False, False),
            " weight gradient": backward(False, True, False)}


def batch_norm(extents, dtype):
    channels = extents[1:2]
    x, dy, weight, bias = values(extents, dtype), values(extents, dtype), values(channels, dtype), values(channels, dtype)
    mean, variance = torch.zeros(channels), torch.ones(channels)
    _, batch_mean, rstd = torch.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5)

    def backward(*wanted):
        return lambda: aten.native_batch_norm_backward(dy, x, weight, mean, variance, batch_mean, rstd, True, 1e-5, wanted)
    return {"": lambda: torch.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5),
            " inference": lambda: torch.native_batch_norm(x, weight, bias, mean, variance, False, 0.1, 1e-5),
            " input gradient": backward(True, False, False), " weight gradient": backward(False, True, True)}


def max_pool2d(extents, dtype):
    x = values(extents, dtype)
    y, indices = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    return {"": lambda: aten.max_pool2d_with_indices(x, [2, 2], [2, 2]),
            " gradient": lambda: aten.max_pool2d_with_indices_backward(y, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)}


def avg_pool2d(extents, dtype):
    x = values(extents, dtype)
    y = F.avg_pool2d(x, 2)
    return {"": lambda: F.avg_pool2d(x, 2), " gradient": lambda: aten.avg_pool2d_backward(y, x, [2, 2], [2, 2], [0, 0], False, True, None)}


def halves(x):
    return x[..., :x.shape[-1] // 2]


def dropout(x):
    return F.dropout(x, 0.1)


families = {
    "relu": activation(torch.relu, lambda dy, y: aten.threshold_backward(dy, y, 0)),
    "gelu exact": activation(F.gelu, lambda dy, x: aten.gelu_backward(dy, x)),
    "gelu": activation(lambda x: F.gelu(x, approximate="tanh"), lambda dy, x: aten.gelu_backward(dy, x, approximate="tanh")),
    "silu": activation(F.silu, lambda dy, x: aten.silu_backward(dy, x)),
    "tanh": activation(torch.tanh, lambda dy, y: aten.tanh_backward(dy, y)),
    "sigmoid": activation(torch.sigmoid, lambda dy, y: aten.sigmoid_backward(dy, y)),
    "dropout": unary(dropout),
    "softmax": softmax, "log_softmax": log_softmax, "cross_entropy": cross_entropy, "mse_loss": mse_loss,
    "top_k": unary(lambda x: torch.topk(x, 8)),
    "layer_norm": layer_norm, "rms_norm": rms_norm,
    "add": binary(torch.add), "multiply": binary(torch.mul), "divide": binary(torch.div), "maximum": binary(torch.maximum),
    "add a row": binary(torch.add, lambda b: b[:1].clone()), "add a column": binary(torch.add, lambda b: b[:, :1].clone()),
    "less": binary(torch.lt), "where": binary(lambda a, b: torch.where(b, a, a), lambda b: b > 0),
    "exp": unary(torch.exp), "log": unary(torch.log), "sqrt": unary(torch.sqrt), "clamp": unary(lambda x: torch.clamp(x, -0.5, 0.5)),
    "add a number": unary(lambda x: x + 1.5),
    "cast from f32": unary(lambda x: x.to(torch.bfloat16)),
    "cast to f32": unary(lambda x: x.to(torch.float32)),
    "sum": unary(torch.sum), "sum of rows": unary(lambda x: x.sum(0)), "sum along rows": unary(lambda x: x.sum(-1)),
    "max along rows": unary(lambda x: x.amax(-1)), "argmax along rows": unary(lambda x: x.argmax(-1)),
    "concat": binary(lambda a, b: torch.cat([a, b], -1)), "slice": unary(lambda x: halves(x).contiguous()),
    "transpose": unary(lambda x: x.t().contiguous()),
    "transpose heads": unary(lambda x: x.view(8, -1, 4, x.shape[-1] // 4).transpose(1, 2).contiguous()),
    "embedding": embedding,
    "sgd_step": optimizer_step(lambda of: torch.optim.SGD(of, lr=1e-3, momentum=0.9, fused=True)),
    "sgd_step plain": optimizer_step(lambda of: torch.optim.SGD(of, lr=1e-3, fused=True)),
    "scale_all": scale_all,
    "adam_step": optimizer_step(lambda of: torch.optim.AdamW(of, lr=1e-3, weight_decay=0.1, fused=True)),
    "global_norm": global_norm,
    "linear": linear, "bias": bias, "attention": attention,
    "conv2d": conv2d, "batch_norm": batch_norm, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d,
    "global_avg_pool": unary(lambda x: F.adaptive_avg_pool2d(x, 1)),
}


parts = ("", " gradient", " input gradient", " weight gradient", " inference")
made = {}


def kernel(request):
    name, extents = request["kernel"], tuple(request["extents"])
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[request["dtype"]]
    for part in parts:
        family = name.removesuffix(part) if part else name
        if not name.endswith(part) or family not in families:
            continue
        key = (family, extents, dtype)
        if key not in made:
            made.clear()  # one family's tensors at a time
            made[key] = families[family](extents, dtype)
        if part in made[key]:
            return made[key][part]
    return None


def seconds_of(run):
    begin = time.perf_counter()
    run()
    repeats = max(1, min(1000, int(5e-3 / max(1e-7, time.perf_counter() - begin))))
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats


print(json.dumps({"version": torch.__version__}), flush=True)
for line in sys.stdin:
    run = kernel(json.loads(line))
    print(json.dumps({"seconds": run and seconds_of(run)}), flush=True)
