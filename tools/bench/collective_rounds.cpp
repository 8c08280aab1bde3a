#include "collective_rounds.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

// Nobody else is woken: the least latency, and as bare MPI and Gloo calls wait.
const call_options at_once{.progress = progress_by::waiter};

/// Tensors of one kind of memory.
struct round_tensors {
  tensor x, y;
};

double slowest(communicator& group, double us) {
  auto x = tensor::from(std::vector{static_cast<std::int64_t>(us * 1000)}, {1});
  group.all_reduce(x, reduce_op::max, at_once).wait();
  return static_cast<double>(x.values<std::int64_t>()[0]) / 1000;
}

double time_calls(communicator& group, int calls, const std::function<void()>& once) {
  once();
  group.barrier(at_once).wait();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) once();
  auto end = std::chrono::steady_clock::now();
  return slowest(group, std::chrono::duration<double, std::micro>(end - begin).count() / calls);
}

void ping(communicator& group, tensor& x) {
  for (int from = 0; from < 2; ++from) {
    if (group.rank() == from) group.send(x, 1 - from, at_once).wait();
    if (group.rank() == 1 - from) group.receive(x, from, at_once).wait();
  }
}

std::function<void()> call_of(communicator& group, const collective_round& what, round_tensors& of) {
  if (what.operation == "p2p") return [&] { ping(group, of.x); };
  if (what.operation == "all_reduce") return [&] { group.all_reduce(of.x, reduce_op::sum, at_once).wait(); };
  auto part = of.x.num_elements() / group.size();
  auto own = of.x.reshape({group.size(), part}).rows(group.rank(), 1);
  if (what.operation == "all_gather") return [&, own] { group.all_gather(own, of.x, at_once).wait(); };
  if (what.operation == "reduce_scatter")
    return [&, own] { group.reduce_scatter(of.x, own, reduce_op::sum, at_once).wait(); };
  throw_invalid("measure_round", "all_reduce, all_gather, reduce_scatter or p2p", what.operation);
}

}  // namespace

int calls_for(std::int64_t size_bytes) {
  constexpr std::int64_t bytes_to_move = std::int64_t{48} << 20;
  return static_cast<int>(std::clamp<std::int64_t>(bytes_to_move / size_bytes, 2, 1000));
}

collective_times measure_round(communicator& group, const collective_round& what) {
  auto parts_of = std::int64_t{4} * group.size();
  shape extents{(what.size_bytes + parts_of - 1) / parts_of * group.size()};
  round_tensors own{group.allocate(extents, dtype::f32), {}}, foreign{tensor::zeros(extents), {}};
  auto from = tensor::full(extents, 1), to = tensor::full(extents, 2);
  auto own_call = call_of(group, what, own), foreign_call = call_of(group, what, foreign);
  auto copy = [&] { std::memcpy(to.bytes().data(), from.bytes().data(), from.size_bytes()); };
  auto calls = calls_for(what.size_bytes);
  double trips = what.operation == "p2p" ? 2 : 1;
  collective_times times;
  for (int i = 0; i < what.repeats; ++i) {
    times.floor.push_back(time_calls(group, calls, copy));
    times.own.push_back(time_calls(group, calls, own_call) / trips);
    times.foreign.push_back(time_calls(group, calls, foreign_call) / trips);
  }
  return times;
}

}  // namespace troupe::bench
