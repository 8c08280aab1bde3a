#pragma once
#include <chrono>
#include <memory>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/group_backend.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

namespace collective {
class nccl_connections;
}  // namespace collective

/// What all groups of a process on one GPU share: make one for each GPU, before its groups. When a group is
/// aborted, calls of the others have `time_for_others` to end before they are aborted too. Throws bad_input
/// for a CPU.
std::shared_ptr<collective::nccl_connections> make_nccl_connections(
    device gpu, std::chrono::milliseconds time_for_others = std::chrono::milliseconds(200));

/// Makes this process's communicator of a group over NCCL, whose processes have one GPU each. All members
/// call it with the same name and ranks, and it returns when all have. The name together with the ranks is
/// used once in `keys`, which outlives the group. Tensors are in the memory of the GPU of `on`. A call begins
/// after the work that is queued on the GPU at that time, and its result is complete when it has ended.
///
/// Reductions use NCCL's order, which depends on the number and placement of GPUs, sizes and versions. The
/// result differs from the fixed tree's, and may differ elsewhere. All dtypes; bf16 and f16 may be rounded at
/// each step, max and min may lose NaN. The mean is NCCL's.
///
/// Failures: NCCL does not notice that members make different calls. They wait for each other until the
/// time-out, or give wrong results. A lost or stopped member is noticed by the time-out, or earlier if NCCL
/// sees its connection end. After a time-out, failure reports are read from the store, for two seconds at
/// most. An error of CUDA or NCCL on one member fails its calls at once with collective_error (transport)
/// that names its rank; the others fail by their time-outs. Messages have their own communicator for each
/// peer and direction, made for the first message.
///
/// A group that fails, or is destroyed with calls in flight, aborts all its communicators; they access no
/// memory afterwards. NCCL's abort may wait for the calls of other groups on the GPU. So these have time to
/// end (make_nccl_connections); then their groups are aborted together with this one, and fail with its
/// error. Otherwise the destructor waits for NCCL for ten seconds at most, or options.timeout if that is
/// less, and then aborts. No context is made on any other GPU.
///
/// A thread that records a graph (captured_step.hpp), on any GPU, can neither make a group nor make calls or
/// wait for them: std::logic_error, since a replay would omit them. Calls of other threads continue.
///
/// The tests run it without GPUs, with up to three threads as members, over their own NCCL and CUDA runtime.
/// With NCCL itself it has not been run with several GPUs or processes yet.
///
/// Throws collective_error (timed_out, transport) if the group does not come together within options.timeout
/// or CUDA or NCCL refuses; bad_input if the GPU is not there, NCCL cannot be loaded, or Troupe was built
/// without it.
std::unique_ptr<communicator> make_nccl_group(const group_description& group, collective::store& keys,
                                              std::shared_ptr<collective::nccl_connections> on,
                                              const communicator_options& options = {});

/// `--backend nccl` for a World: each process takes the GPU of its local rank. Groups of one process too are
/// made by NCCL, since their tensors are on that GPU.
group_backend nccl_groups();

}  // namespace troupe
