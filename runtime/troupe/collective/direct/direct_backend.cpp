#include "troupe/collective/direct/direct_backend.hpp"

#include "troupe/collective/direct/aborted.hpp"
#include "troupe/collective/direct/algorithms.hpp"

namespace troupe::direct {

direct_backend::direct_backend(group_description group, board at, std::unique_ptr<member_memory> memory)
    : group_(std::move(group)), board_(at), memory_(std::move(memory)) {}

algorithm direct_backend::run(const operation& what, std::uint64_t sequence) {
  if (what.signature.kind == collective_kind::send) return send(board_, *memory_, what, sequence);
  if (what.signature.kind == collective_kind::receive)
    return receive(board_, *memory_, group_, what, sequence);
  return run_collective(what, sequence);
}

algorithm direct_backend::run_collective(const operation& what, std::uint64_t sequence) {
  sequence_ = sequence;
  in_reach_ = {what.input, what.output};
  board_.enter(sequence, what.signature);
  auto chosen_one = chosen(what, sequence);
  co_await finished(chosen_one);
  board_.leave(sequence);
  in_reach_.clear();
}

algorithm direct_backend::chosen(const operation& what, std::uint64_t sequence) {
  meeting at(board_, *memory_, group_, what, sequence);
  switch (what.signature.kind) {
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

std::vector<member_state> direct_backend::examine(std::uint64_t) {
  std::vector<member_state> states;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.member) continue;
    auto last = board_.last_of(i);
    auto call = "call " + std::to_string(last.entered) + ", " + to_string(last.signature);
    std::string doing = last.entered == 0           ? "has called nothing yet"
                        : last.left == last.entered ? "has finished " + call + ", and called nothing since"
                                                    : "is in " + call;
    states.push_back({i, last.entered, doing});
  }
  return states;
}

void direct_backend::abort(const collective_error& why) noexcept {
  board_.end_reach();
  board_.abort(why);
  for (const auto& each : in_reach_)
    if (each.defined()) memory_->withdraw(each, board_);
  in_reach_.clear();
}

}  // namespace troupe::direct
