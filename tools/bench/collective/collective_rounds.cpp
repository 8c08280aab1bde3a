#include "bench/collective/collective_rounds.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

// Nobody else is woken: the least latency, and as bare MPI and Gloo calls wait.
const call_options at_once{.progress = progress_by::waiter};

void ping(communicator& group, const tensor& x) {
  for (int from = 0; from < 2; ++from) {
    if (group.rank() == from) group.send(x, 1 - from, at_once).wait();
    if (group.rank() == 1 - from) group.receive(x, from, at_once).wait();
  }
}

std::function<void()> call_of(communicator& group, const std::string& operation, const tensor& x) {
  if (operation == "p2p") return [&group, x] { ping(group, x); };
  if (operation == "all_reduce") return [&group, x] { group.all_reduce(x, reduce_op::sum, at_once).wait(); };
  auto part = x.num_elements() / group.size();
  auto own = x.reshape({group.size(), part}).rows(group.rank(), 1);
  if (operation == "all_gather") return [&group, x, own] { group.all_gather(own, x, at_once).wait(); };
  if (operation == "reduce_scatter")
    return [&group, x, own] { group.reduce_scatter(x, own, reduce_op::sum, at_once).wait(); };
  throw_invalid("measure_round", "all_reduce, all_gather, reduce_scatter or p2p", operation);
}

/// What the owner's computing would leave in its caches.
void rewrite(tensor& x) {
  if (x.device() != device{}) {
    x.fill_zero();
    return synchronize(x.device());
  }
  std::ranges::fill(x.values<float>(), 1.0F);
}

void copy(const tensor& from, tensor& to) {
  if (from.device() == device{}) {
    std::memcpy(to.bytes().data(), from.bytes().data(), from.size_bytes());
    return;
  }
  to.copy_from(from);
  synchronize(from.device());
}

shape extents_of(const communicator& group, const collective_round& what) {
  auto parts_of = std::int64_t{4} * group.size();
  return {(what.size_bytes + parts_of - 1) / parts_of * group.size()};
}

/// Times the calls of one round.
struct round_timer {
  const meeting_members& members;
  const collective_round& what;
  int most_calls = std::numeric_limits<int>::max();

  double operator()(tensor& written, const std::function<void()>& once) const {
    timed_calls calls{std::min(calls_for(what.size_bytes), most_calls)};
    if (what.fresh) calls.rewrite = [&written] { rewrite(written); };
    return time_calls(members, calls, once);
  }
  /// The same for calls that are two trips where the operation is p2p.
  double per_trip(tensor& written, const std::function<void()>& once) const {
    return (*this)(written, once) / (what.operation == "p2p" ? 2 : 1);
  }
};

/// Probe, floor, and what `more` adds, in turn. The floor copies tensors like this one.
template <class More>
std::vector<collective_sample> measure(communicator& group, core_probe& probe, const collective_round& what,
                                       const tensor& like, More more) {
  auto from = like.clone(), to = like.clone();
  auto members = meeting_of(group);
  round_timer timed{members, what};
  std::vector<collective_sample> samples;
  for (int i = 0; i < what.repeats; ++i) {
    collective_sample sample;
    sample.probe = probe.measure(members);
    sample.memcpy = timed(from, [&] { copy(from, to); });
    more(sample, timed);
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace

meeting_members meeting_of(communicator& group) {
  auto where = group.allocate({1}).device();
  return {[&group] { group.barrier(at_once).wait(); },
          [&group, where](double us) {
            auto x = tensor::from(std::vector{static_cast<std::int64_t>(us * 1000)}, {1}).to(where);
            group.all_reduce(x, reduce_op::max, at_once).wait();
            return static_cast<double>(x.to({}).values<std::int64_t>()[0]) / 1000;
          }};
}

std::vector<collective_sample> measure_group(communicator& group, core_probe& probe,
                                             const collective_round& what) {
  auto own = group.allocate(extents_of(group, what)),
       foreign = tensor::zeros(own.shape(), dtype::f32, own.device());
  return measure(group, probe, what, foreign, [&](collective_sample& sample, const round_timer& timed) {
    sample.own = timed.per_trip(own, call_of(group, what.operation, own));
    sample.foreign = timed.per_trip(foreign, call_of(group, what.operation, foreign));
  });
}

std::vector<collective_sample> measure_gloo(communicator& group, gloo_peer& gloo, core_probe& probe,
                                            const collective_round& what) {
  auto x = tensor::zeros(extents_of(group, what));
  return measure(group, probe, what, x, [&](collective_sample& sample, round_timer timed) {
    timed.most_calls = 100;  // each takes gloo tens of microseconds at least
    sample.gloo = timed.per_trip(x, [&] { gloo.call(x); });
  });
}

}  // namespace troupe::bench
