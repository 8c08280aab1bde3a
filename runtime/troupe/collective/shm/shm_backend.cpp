#include "troupe/collective/shm/shm_backend.hpp"

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/collective/shm/algorithms.hpp"
#include "troupe/collective/shm/shm_call.hpp"

namespace troupe::collective::shm {
namespace {

std::string describe(const control_block::last_call& last) {
  return last.left == last.entered ? text_after_call(last.entered, last.signature)
                                   : text_in_call(last.entered, last.signature);
}

}  // namespace

shm_backend::shm_backend(group_description group, control_block block, std::unique_ptr<member_memory> memory)
    : group_(std::move(group)), block_(block), memory_(std::move(memory)) {}

algorithm shm_backend::run(const collective_operation& what, std::uint64_t sequence) {
  call_scope scope(running_, block_, what, sequence);
  if (what.signature.kind == collective_kind::send)
    return send(block_, *memory_, std::move(scope), what, sequence);
  if (what.signature.kind == collective_kind::receive)
    return receive(block_, *memory_, std::move(scope), group_, what, sequence);
  return run_collective({block_, *memory_, group_, std::move(scope), what, sequence});
}

algorithm shm_backend::run_collective(shm_call call) {
  switch (call.operation().signature.kind) {
    case collective_kind::all_reduce:
      return all_reduce(std::move(call));
    case collective_kind::reduce_scatter:
      return reduce_scatter(std::move(call));
    case collective_kind::all_gather:
      return all_gather(std::move(call));
    case collective_kind::broadcast:
      return broadcast(std::move(call));
    case collective_kind::reduce:
      return reduce(std::move(call));
    case collective_kind::gather:
      return gather(std::move(call));
    case collective_kind::scatter:
      return scatter(std::move(call));
    case collective_kind::all_to_all:
      return all_to_all(std::move(call));
    case collective_kind::barrier:
    case collective_kind::send:
    case collective_kind::receive:
      break;
  }
  return barrier(std::move(call));
}

void shm_backend::check_members() { throw_if_aborted(block_, group_); }

void shm_backend::throw_if_waiting_for(int member) const {
  auto last = block_.last_of(member);
  for (const auto& each : running_) {
    bool is_point_to_point = each.what->peer >= 0;
    if (is_point_to_point ? each.what->peer != member : last.left >= each.sequence) continue;
    failure_diagnosis diagnosis(group_);
    throw diagnosis.lost({each.what->signature, each.sequence}, member,
                         "the process of rank " + to_string(diagnosis.rank_of(member)) + " has ended",
                         describe(last));
  }
}

/// Whether others wait for `member` in call `sequence`, which this member is in.
bool shm_backend::is_behind(int member, std::uint64_t sequence) const {
  const auto& slot = block_.slot(block_.member(), member, sequence);
  return slot.sequence.load(std::memory_order_acquire) < sequence || !block_.has_finished_phase(member);
}

std::vector<member_state> shm_backend::examine(std::uint64_t sequence) {
  std::vector<member_state> states;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.member) continue;
    states.push_back({i, describe(block_.last_of(i)), is_behind(i, sequence)});
  }
  return states;
}

bool shm_backend::add_wake_sources(wake_sources& sources) {
  sources.at_most = block_.bounded(sources.at_most);
  return true;
}

void shm_backend::abort(const collective_error& why) noexcept {
  block_.end_access();
  block_.abort(why);
  memory_->revoke_all(block_);
}

}  // namespace troupe::collective::shm
