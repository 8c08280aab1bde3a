#pragma once
#include <memory>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/group_backend.hpp"
#include "troupe/collective/store.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// This process's end of a group of processes with a GPU each, over NCCL; all call this with the same name
/// and ranks, and it returns when all have. The name together with the ranks is used once in `rendezvous`,
/// which outlives the group. Tensors are in the memory of `gpu`; a call begins after the work that is queued
/// there when it begins, and what it brings is there when it has ended.
///
/// Reductions: in NCCL's order, which depends on the number and placing of GPUs, sizes and versions: not the
/// bits of the fixed tree, and not promised to be the same elsewhere. All dtypes; bf16 and f16 may be rounded
/// at each step, max and min may lose NaN. The mean is NCCL's own.
///
/// NCCL does not notice that members make different calls: these wait for each other until the time-out, or
/// bring wrong elements. Who is missing is asked through the store then, for two seconds at most. A lost or
/// silent member is noticed by the time-out, or earlier where NCCL sees its connection end. What CUDA or NCCL
/// refuses on one member fails its calls at once as collective_error (transport) that names its rank, and the
/// others' by the time-out, which tells them. Messages take a communicator of their own for each peer and
/// direction, made with the first one.
///
/// A group that fails, or goes with calls in flight, aborts all its communicators together, and nothing of
/// them touches memory afterwards. One that goes in peace waits for NCCL ten seconds at most, or
/// options.timeout if that is less, and aborts then. No context is made on any other GPU than `gpu`.
///
/// While a thread records (captured_step.hpp), on whichever GPU, it can neither begin a group nor make calls
/// or wait for them: std::logic_error, since replays would leave these out. The calls of other threads go on.
///
/// The tests run it without GPUs, with up to three members as threads, over a NCCL and a CUDA runtime of
/// their own; with NCCL itself it has not run with several GPUs or processes yet.
///
/// Throws collective_error (timed_out, transport) if the group does not come together within options.timeout
/// or CUDA or NCCL refuses; bad_input if `gpu` is not there, NCCL cannot be loaded, or Troupe was built
/// without it.
std::unique_ptr<communicator> make_nccl_group(const group_description& group, store& rendezvous, device gpu,
                                              const communicator_options& options = {});

/// `--backend nccl` for a World: each process takes the GPU of its local rank. Groups of one process too are
/// made by NCCL, since their tensors are on that GPU.
group_backend nccl_groups();

}  // namespace troupe
