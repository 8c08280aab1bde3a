// troupe_group_rounds OPTIONS: one member of a group whose operations are measured, or all of them as threads
// (backend local). `troupe bench all_reduce` starts it, under a launcher or mpirun; it is a program of its
// own so that `troupe` itself links no communication library. OPTIONS is a JSON object with the fields of
// group_rounds_options. Rank 0 prints {"bytes":..,"samples":[..]} (collective_samples.hpp) for each size.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "bench/collective/collective_samples.hpp"
#include "bench/collective/gloo_call.hpp"
#include "bench/collective/group_calls.hpp"
#include "bench/collective/shared_memory.hpp"
#include "bench/collective/timed_calls.hpp"
#include "bench/processes/bench_node.hpp"
#include "troupe/collective/every_backend.hpp"
#include "troupe/collective/group/backend_registry.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

struct group_rounds_options {
  std::string operation;  ///< all_reduce, all_gather, reduce_scatter or p2p
  std::string backend;
  std::vector<std::int64_t> bytes;  ///< of the whole tensor, one size after the other
  int ranks = 1;                    ///< threads of the backend local
  int repeats = 1;                  ///< how often all that is compared is measured, in turn
  bool fresh = false;               ///< owners rewrite their tensors before each call
  bool gloo = false;                ///< measure gloo's own calls; the group serves for barriers
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(group_rounds_options, operation, backend, bytes, ranks, repeats, fresh,
                                   gloo)

/// What computing the tensor would leave in its owner's caches.
void rewrite(tensor& x) {
  if (x.device() == device{}) return static_cast<void>(std::ranges::fill(x.values<float>(), 1.0F));
  x.fill_zero();
  synchronize(x.device());
}

void copy(const tensor& from, tensor& to) {
  if (from.device() == device{})
    return static_cast<void>(std::memcpy(to.bytes().data(), from.bytes().data(), from.size_bytes()));
  to.copy_from(from);
  synchronize(from.device());
}

rank_sync sync_of(communicator& group) {
  auto where = group.allocate({1}).device();
  return {[&group] { group.barrier(waiter_progress).wait(); },
          [&group, where](double us) {
            auto x = tensor::from(std::vector{static_cast<std::int64_t>(us * 1000)}, {1}).to(where);
            group.all_reduce(x, reduce_op::max, waiter_progress).wait();
            return static_cast<double>(x.to({}).values<std::int64_t>()[0]) / 1000;
          }};
}

/// Measures the calls of one member.
class member_rounds {
 public:
  using gloo_call = std::function<void(tensor&)>;

  /// gloo: null if the group itself is measured.
  member_rounds(communicator& group, gloo_call gloo, const group_rounds_options& options)
      : group_(group),
        gloo_(std::move(gloo)),
        options_(options),
        sync_(sync_of(group)),
        memory_(group, core_probe::size_bytes),
        probe_(memory_.part(group.rank()), memory_.part((group.rank() + 1) % group.size())) {}

  void run() {
    for (auto size : options_.bytes) {
      auto samples = gloo_ ? measure_gloo(size) : measure_group(size);
      if (group_.rank() == 0)
        std::printf("%s\n", nlohmann::json{{"bytes", size}, {"samples", samples}}.dump().c_str());
    }
    group_.barrier().wait();
  }

 private:
  /// Of f32, at least as large as asked, and a part for each member.
  shape extents_of(std::int64_t size_bytes) const {
    auto step = std::int64_t{4} * group_.size();
    return {(size_bytes + step - 1) / step * group_.size()};
  }

  double time(tensor& written, int most_calls, const std::function<void()>& call) const {
    timed_calls calls{std::min(calls_for(static_cast<std::int64_t>(written.size_bytes())), most_calls)};
    if (options_.fresh) calls.rewrite = [&written] { rewrite(written); };
    return time_calls(sync_, calls, call);
  }

  /// One way: p2p is half of a round trip.
  double time_operation(tensor& written, int most_calls, const std::function<void()>& call) const {
    return time(written, most_calls, call) / (options_.operation == "p2p" ? 2 : 1);
  }

  /// The probe, the copies, and what `add` measures, in turn.
  std::vector<collective_sample> measure(const tensor& like,
                                         const std::function<void(collective_sample&)>& add) {
    auto from = like.clone(), to = like.clone();
    std::vector<collective_sample> samples;
    for (int i = 0; i < options_.repeats; ++i) {
      auto& sample = samples.emplace_back();
      sample["probe_us"] = probe_.measure(sync_);
      sample["memcpy_us"] = time(from, any_number, [&] { copy(from, to); });
      add(sample);
    }
    return samples;
  }

  std::vector<collective_sample> measure_group(std::int64_t size_bytes) {
    auto own = group_.allocate(extents_of(size_bytes));
    auto foreign = tensor::zeros(own.shape(), dtype::f32, own.device());
    auto time_group = [this](tensor& x) {
      return time_operation(x, any_number, make_group_call(group_, options_.operation, x));
    };
    return measure(foreign, [&](collective_sample& sample) {
      sample["own_us"] = time_group(own);
      sample["foreign_us"] = time_group(foreign);
    });
  }

  std::vector<collective_sample> measure_gloo(std::int64_t size_bytes) {
    constexpr int most_calls = 100;  // each takes gloo tens of microseconds at least
    auto x = tensor::zeros(extents_of(size_bytes));
    return measure(x, [&](collective_sample& sample) {
      sample["gloo_us"] = time_operation(x, most_calls, [&] { gloo_(x); });
    });
  }

  static constexpr int any_number = std::numeric_limits<int>::max();

  communicator& group_;
  gloo_call gloo_;
  const group_rounds_options& options_;
  rank_sync sync_;
  shared_memory memory_;
  core_probe probe_;
};

void run_threads(const group_rounds_options& options) {
  auto members = make_local_group(options.ranks);
  std::vector<std::jthread> threads;
  for (const auto& each : members)
    threads.emplace_back([&each, &options] { member_rounds(*each, nullptr, options).run(); });
}

void run_processes(const group_rounds_options& options) {
  auto self = start_launched_node();
  group_description description{
      "bench", std::vector<world_rank>(static_cast<std::size_t>(self->world_size())), self->rank()};
  std::iota(description.ranks.begin(), description.ranks.end(), 0);
  backend_registry backends(options.backend, every_backend(),
                            {self->rank(), self->world_size(), self->local_rank()});
  backends.set_job_token(self->group_token());
  auto group = backends.make(description, self->keys(), {});
  if (!options.gloo) return member_rounds(*group, nullptr, options).run();
  description.name = "gloo";
  member_rounds::gloo_call gloo;
  try {
    gloo = make_gloo_call(description, self->keys(), options.operation);
  } catch (const bad_input& absent) {
    if (group->rank() == 0) std::printf("%s\n", nlohmann::json{{"no_gloo", absent.what()}}.dump().c_str());
    return;
  }
  member_rounds(*group, gloo, options).run();
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** arguments) {
  using namespace troupe;
  try {
    if (count != 2)
      throw bad_input("expected its options as one JSON object; `troupe bench all_reduce` runs it");
    bench::group_rounds_options options = nlohmann::json::parse(arguments[1]);
    options.backend == "local" ? bench::run_threads(options) : bench::run_processes(options);
    return 0;
  } catch (const bad_input& problem) {
    std::fprintf(stderr, "troupe_group_rounds: %s\n", problem.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "troupe_group_rounds: %s\n", failure.what());
    return 1;
  }
}
