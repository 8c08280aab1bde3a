"""Writes ignored_labels.txt: what PyTorch makes of samples of which some have no label.

The same 64 points as tests/support/models/partly_labelled.hpp, a network of three layers with weights sin(k + 1) / 2, and six
steps of SGD on all points. Prints the loss and accuracy before each step, then all weights in name order.
Run with PyTorch 2.14: python3 ignored_labels.py > ignored_labels.txt
"""
import math

import torch

state = 12345


def noise():
    global state
    state = (state * 1664525 + 1013904223) % 2**32
    return (state >> 8) / (1 << 24) - 0.5


points, labels = [], []
for i in range(64):
    corner = i % 4
    points.append([(1.0 if corner & 1 else -1.0) + noise(), (1.0 if corner & 2 else -1.0) + noise()])
    labels.append(corner if i % 7 % 2 == 0 and i % 3 != 1 else -100)
x, y = torch.tensor(points), torch.tensor(labels)

model = torch.nn.Sequential(
    torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)
)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.copy_(torch.tensor([math.sin(k + 1) / 2 for k in range(parameter.numel())]).view(parameter.shape))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
counted = y != -100
for step in range(6):
    optimizer.zero_grad()
    output = model(x)
    loss = torch.nn.functional.cross_entropy(output, y)
    accuracy = (output.argmax(1) == y)[counted].float().mean()
    print(f"{loss.item():.9g} {accuracy.item():.9g}")
    loss.backward()
    optimizer.step()
for name, parameter in sorted(model.named_parameters()):
    print(name, *(f"{value:.9g}" for value in parameter.flatten().tolist()))
