"""Exchanges plans with torch.distributed.pipelining (written for PyTorch 2.14).

    python3 pytorch_plans.py dump FOLDER             # makes the files of this folder
    python3 pytorch_plans.py load zb_v 4 8 FILE      # class, ranks, microbatches: does PyTorch load our plan?
"""

import os
import sys

import torch
from torch.distributed.pipelining import schedules

CLASSES = {
    "interleaved_1f1b": schedules.ScheduleInterleaved1F1B,
    "interleaved_zero_bubble": schedules.ScheduleInterleavedZeroBubble,
    "zb_v": schedules.ScheduleZBVZeroBubble,
    "dualpipe_v": schedules.ScheduleDualPipeV,
    "looped_bfs": schedules.ScheduleLoopedBFS,
}
# kind, ranks, stages a rank, microbatches
PLANS = [
    ("interleaved_1f1b", 2, 2, 4),
    ("interleaved_1f1b", 3, 3, 6),
    ("interleaved_1f1b", 4, 2, 8),
    ("interleaved_zero_bubble", 2, 2, 4),
    ("zb_v", 2, 2, 2),
    ("zb_v", 3, 2, 6),
    ("zb_v", 4, 2, 8),
    ("dualpipe_v", 2, 2, 4),
    ("dualpipe_v", 3, 2, 7),
    ("dualpipe_v", 4, 2, 10),
    ("looped_bfs", 2, 2, 4),
    ("looped_bfs", 3, 1, 3),
    ("looped_bfs", 4, 2, 8),
]


class Stage:
    """What the constructors of schedules look at."""

    def __init__(self, index, num_stages, num_ranks):
        self.stage_index = index
        self.num_stages = num_stages
        self.group_size = num_ranks
        self.group_rank = 0
        self.is_first = index == 0
        self.is_last = index == num_stages - 1
        self.has_backward = True
        self.submod = torch.nn.Linear(1, 1)

    def __getattr__(self, name):
        return None


def schedule(kind, ranks, chunks, microbatches):
    num_stages = ranks * chunks
    is_v = kind in ("zb_v", "dualpipe_v")
    indices = [0, num_stages - 1] if is_v else range(0, num_stages, ranks)
    stages = [Stage(index, num_stages, ranks) for index in indices]
    return CLASSES[kind](stages, microbatches, loss_fn=lambda output, target: output)


def dump(folder):
    for kind, ranks, chunks, microbatches in PLANS:
        form = "compute_comms" if ranks == 4 else "compute_only"
        name = f"{kind}_p{ranks}" + ("" if kind.endswith("_v") else f"_v{chunks}") + f"_m{microbatches}"
        file = os.path.join(folder, name + ("_comms" if ranks == 4 else "") + ".csv")
        plan = schedule(kind, ranks, chunks, microbatches)
        plan._dump_csv(file, form)
        with open(file, newline="") as stream:
            text = stream.read()
        made_by = f"{type(plan).__name__}, {ranks} ranks, {ranks * chunks} stages, {microbatches} microbatches"
        version = torch.__version__.split("+")[0]
        with open(file, "w", newline="") as stream:
            stream.write(
                f"# torch.distributed.pipelining.{made_by}: "
                f'_dump_csv(file, format="{form}") of PyTorch {version}\r\n{text}'
            )


def load(kind, ranks, microbatches, file):
    with open(file) as stream:
        cells = stream.read().replace("\n", ",").split(",")
    num_stages = 1 + max(int(cell[: cell.index("F")]) for cell in cells if "F" in cell)
    plan = schedule(kind, ranks, num_stages // ranks, microbatches)
    plan.pipeline_order = {}
    plan._load_csv(file, format="compute_only")
    print(f"{file}: loaded, {sum(len(row) for row in plan.pipeline_order.values())} actions")


if __name__ == "__main__":
    if sys.argv[1:2] == ["dump"]:
        dump(sys.argv[2])
    else:
        load(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
