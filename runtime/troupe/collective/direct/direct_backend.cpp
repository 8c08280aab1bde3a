#include "troupe/collective/direct/direct_backend.hpp"

#include "troupe/collective/direct/aborted.hpp"
#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/post_mortem.hpp"

namespace troupe::direct {
namespace {

std::string describe(const board::last_call& last) {
  return last.left == last.entered ? doing_after(last.entered, last.signature)
                                   : doing_in(last.entered, last.signature);
}

}  // namespace

direct_backend::direct_backend(group_description group, board at, std::unique_ptr<member_memory> memory)
    : group_(std::move(group)), board_(at), memory_(std::move(memory)) {}

algorithm direct_backend::run(const collective_operation& what, std::uint64_t sequence) {
  presence here(running_, board_, what, sequence);
  if (what.signature.kind == collective_kind::send)
    return send(board_, *memory_, std::move(here), what, sequence);
  if (what.signature.kind == collective_kind::receive)
    return receive(board_, *memory_, std::move(here), group_, what, sequence);
  return run_collective({board_, *memory_, group_, std::move(here), what, sequence});
}

algorithm direct_backend::run_collective(meeting at) {
  switch (at.what().signature.kind) {
    case collective_kind::all_reduce:
      return all_reduce(std::move(at));
    case collective_kind::reduce_scatter:
      return reduce_scatter(std::move(at));
    case collective_kind::all_gather:
      return all_gather(std::move(at));
    case collective_kind::broadcast:
      return broadcast(std::move(at));
    case collective_kind::reduce:
      return reduce(std::move(at));
    case collective_kind::gather:
      return gather(std::move(at));
    case collective_kind::scatter:
      return scatter(std::move(at));
    case collective_kind::all_to_all:
      return all_to_all(std::move(at));
    case collective_kind::barrier:
    case collective_kind::send:
    case collective_kind::receive:
      break;
  }
  return barrier(std::move(at));
}

void direct_backend::check_members() { throw_if_aborted(board_, group_); }

void direct_backend::throw_if_needed(int member) const {
  auto last = board_.last_of(member);
  for (const auto& each : running_) {
    bool is_between_two = each.what->peer >= 0;
    if (is_between_two ? each.what->peer != member : last.left >= each.sequence) continue;
    post_mortem found(group_);
    throw found.lost({each.what->signature, each.sequence}, member,
                     "the process of rank " + std::to_string(found.rank_of(member)) + " has ended",
                     describe(last));
  }
}

/// Whether others wait for `member` in call `sequence`, which this member is in.
bool direct_backend::is_behind(int member, std::uint64_t sequence) const {
  const auto& note = board_.note(board_.member(), member, sequence);
  return note.sequence.load(std::memory_order_acquire) < sequence || !board_.has_passed(member);
}

std::vector<member_state> direct_backend::examine(std::uint64_t sequence) {
  std::vector<member_state> states;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.member) continue;
    states.push_back({i, describe(board_.last_of(i)), is_behind(i, sequence)});
  }
  return states;
}

void direct_backend::abort(const collective_error& why) noexcept {
  board_.end_reach();
  board_.abort(why);
  memory_->withdraw_all(board_);
}

}  // namespace troupe::direct
