#include "support/fake_nccl/members.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "support/cuda_emulation/runtime/stream_work.hpp"

namespace troupe::fake_nccl {
namespace {

bool has_all_members(const ncclComm& which) {
  if (which.others) return which.others->has_all_members();
  return std::ranges::all_of(which.of->members, [](auto member) { return member != nullptr; });
}

/// One attempt to execute a launch, like a kernel that waits for the other members' kernels. True once it is
/// done.
bool attempt(ncclComm& own, std::uint64_t number, const launch& calls) {
  std::lock_guard lock(the_library().mutex);
  if (own.is_aborted) return true;
  if (own.others) {
    bool is_done = own.others->attempt(number, calls);
    own.num_done += is_done ? 1 : 0;
    return is_done;
  }
  auto& all = own.of->launches[number];
  all.by_member.resize(own.of->members.size());
  all.by_member[static_cast<std::size_t>(own.rank)] = calls;
  auto has_come = [](const auto& each) { return each.has_value(); };
  auto is_there = [](auto member) { return !member->is_aborted; };
  if (!all.is_done && std::ranges::all_of(all.by_member, has_come) &&
      std::ranges::all_of(own.of->members, is_there)) {
    std::vector<launch> by_member;
    for (const auto& each : all.by_member) by_member.push_back(*each);
    all.is_done = carry_out(by_member);
  }
  own.num_done += all.is_done ? 1 : 0;
  return all.is_done;
}

/// Runs on its own thread, as in NCCL, so that the current GPU of other threads does not change.
void put_into_stream(ncclComm& own) {
  auto launched = std::exchange(own.waiting, std::nullopt);
  std::thread([&own, number = own.num_launched++, what = std::move(*launched)] {
    cudaSetDevice(own.gpu);
    emulation::enqueue_attempts(what.stream,
                                [&own, number, calls = what.calls] { return attempt(own, number, calls); });
  }).join();
}

bool is_in_flight(const ncclComm& which) {
  return !which.is_aborted && !which.is_ended && which.num_done < which.num_launched;
}

}  // namespace

library& the_library() {
  static library all;
  return all;
}

ncclResult_t state_of(const ncclComm& which) {
  if (which.failure != ncclSuccess) return which.failure;
  bool is_waiting = which.num_in_progress > 0 || which.is_never_ready || !has_all_members(which) ||
                    (which.is_finalizing && the_library().is_never_finalized);
  return is_waiting ? ncclInProgress : ncclSuccess;
}

void advance(ncclComm& which) {
  if (which.num_in_progress > 0) --which.num_in_progress;
  if (which.waiting && state_of(which) == ncclSuccess) put_into_stream(which);
}

void begin(ncclComm& which, waiting_launch launched) {
  which.waiting = std::move(launched);
  which.num_in_progress = the_library().num_in_progress;
  if (which.num_in_progress == 0) put_into_stream(which);
}

void abort(const std::vector<ncclComm_t>& together) {
  for (auto* each : together) {
    each->is_aborted = each->is_ended = true;
    each->waiting = std::nullopt;
  }
  // An abort frees memory, so it waits for all work of the GPU.
  for (const auto& other : the_library().communicators)
    if (is_in_flight(*other) &&
        std::ranges::any_of(together, [&](auto* each) { return each->gpu == other->gpu; }))
      the_library().problems.push_back("ncclCommAbort waits for a call of another communicator on GPU " +
                                       std::to_string(other->gpu) + ", which waits for its members");
}

}  // namespace troupe::fake_nccl
