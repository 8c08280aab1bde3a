#include "troupe/collective/nccl/nccl_backend.hpp"

#include "troupe/collective/nccl/nccl_calls.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/cuda/recording.hpp"

namespace troupe {

nccl_backend::nccl_backend(group_description group, store& rendezvous, device gpu,
                           std::chrono::milliseconds longest_end)
    : library_backend(std::move(group), rendezvous),
      rendezvous_(rendezvous),
      gpu_(gpu),
      longest_end_(longest_end) {
  barrier_.signature.kind = collective_kind::all_reduce;
  barrier_.signature.count = 1;
  barrier_.input = barrier_.output = tensor::zeros({1}, dtype::f32, gpu);
}

/// The queue may hand a call to its own thread, on which nothing is recorded.
void nccl_backend::refuse_in_recording(std::string_view what) const { troupe::refuse_in_recording(what); }

/// By sender and receiver; the collectives' by neither.
nccl_connection& nccl_backend::connection_for(const collective_operation& what) {
  bool sends = what.signature.kind == collective_kind::send;
  std::pair<int, int> between{-1, -1};
  if (what.peer >= 0)
    between = sends ? std::pair(group().member, what.peer) : std::pair(what.peer, group().member);
  auto found = connections_.find(between);
  if (found != connections_.end()) return found->second;
  auto key = group().name + "/nccl";
  for (int rank : group().ranks) key += '/' + std::to_string(rank);
  key += "/from/" + std::to_string(between.first) + "/to/" + std::to_string(between.second);
  int size = what.peer >= 0 ? 2 : group().size();
  int member = what.peer < 0 ? group().member : sends ? 0 : 1;
  return connections_
      .try_emplace(between, gpu_, rendezvous_, nccl_end{std::move(key), size, member}, longest_end_)
      .first->second;
}

algorithm nccl_backend::run(const collective_operation& what, std::uint64_t sequence) {
  if (what.peer < 0) enter(what, sequence);
  bool is_barrier = what.signature.kind == collective_kind::barrier;
  const auto& issued = is_barrier ? barrier_ : what;
  if (issued.signature.count > 0) {
    nccl_connection* on = nullptr;
    co_await until(
        [&] { return holds([&] { return on = &connection_for(what), on->is_ready(); }, what, sequence); });
    co_await until([&] { return holds([&] { return issue(*on, issued), true; }, what, sequence); });
    co_await until([&] { return holds([&] { return on->is_issued(); }, what, sequence); });
    co_await until([&] { return holds([&] { return on->mark_end(), true; }, what, sequence); });
    co_await until([&] { return holds([&] { return on->has_ended(); }, what, sequence); });
  }
  if (what.peer < 0) leave();
}

void nccl_backend::issue(nccl_connection& on, const collective_operation& what) {
  gpu_scope scope(gpu_.index);
  on.follow_queued_work();
  nccl_calls::issue(on, what);
}

bool nccl_backend::holds(const std::function<bool()>& state, const collective_operation& what,
                         std::uint64_t sequence) {
  try {
    return state();
  } catch (const nccl_error& failure) {
    if (failure.may_be_of_others()) fail(failure.what(), what, sequence);
    fail_here(failure.what(), what, sequence);
  } catch (const cuda_error& failure) {
    fail_here(failure.what(), what, sequence);
  }
}

void nccl_backend::break_off() noexcept {
  std::vector<nccl_connection*> all;
  for (auto& [between, each] : connections_) all.push_back(&each);
  nccl_connection::abort(std::move(all));
}

}  // namespace troupe
