// troupe_group_rounds OPTIONS: one member of a group whose operations are measured, or all of them as threads
// (backend local). `troupe bench all_reduce` starts it, under a launcher or mpirun; it is a program of its
// own so that `troupe` itself links no communication library. OPTIONS is a JSON object, rounds_options.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "bench/collective/gloo_call.hpp"
#include "bench/collective/group_calls.hpp"
#include "bench/collective/rounds.hpp"
#include "bench/processes/bench_process.hpp"
#include "troupe/collective/backends/backend_registry.hpp"
#include "troupe/collective/every_backend.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

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

/// `group` outlives it.
measuring_member member_of(communicator& group) {
  auto where = group.allocate({1}).device();
  return {group.rank(), group.size(), [&group] { group.barrier(waiter_progress).wait(); },
          [&group, where](double us) {
            auto x = tensor::from(std::vector{static_cast<std::int64_t>(us * 1000)}, {1}).to(where);
            group.all_reduce(x, reduce_op::max, waiter_progress).wait();
            return static_cast<double>(x.to({}).values<std::int64_t>()[0]) / 1000;
          }};
}

timed_call call_with(const char* name, const tensor& x, std::function<void()> call) {
  return {name, std::move(call), [x = tensor(x)]() mutable { rewrite(x); }};
}

timed_call copy_like(const tensor& x) {
  auto from = x.clone(), to = x.clone();
  return call_with("memcpy_us", from, [from, to]() mutable { copy(from, to); });
}

void measure_group(communicator& group, const rounds_options& options) {
  measure_rounds(options, member_of(group), [&](std::int64_t size_bytes) -> calls_of_size {
    auto own = group.allocate({num_elements_of(size_bytes, group.size())});
    auto foreign = tensor::zeros(own.shape(), dtype::f32, own.device());
    auto with = [&](const char* name, const tensor& x) {
      return call_with(name, x, make_group_call(group, options.operation, x));
    };
    return {own.size_bytes(), copy_like(foreign), {with("own_us", own), with("foreign_us", foreign)}};
  });
  group.barrier().wait();
}

void measure_gloo(communicator& group, const std::function<void(tensor&)>& call,
                  const rounds_options& options) {
  measure_rounds(options, member_of(group), [&](std::int64_t size_bytes) -> calls_of_size {
    auto x = tensor::zeros({num_elements_of(size_bytes, group.size())});
    auto timed = call_with("gloo_us", x, [&call, x]() mutable { call(x); });
    timed.most_calls = 100;  // each takes gloo tens of microseconds at least
    return {x.size_bytes(), copy_like(x), {timed}};
  });
  group.barrier().wait();
}

void run_threads(const rounds_options& options) {
  auto members = collective::make_local_group(options.ranks);
  std::vector<std::jthread> threads;
  for (const auto& each : members) threads.emplace_back([&each, &options] { measure_group(*each, options); });
}

void run_processes(const rounds_options& options) {
  auto self = start_launched_process();
  collective::backend_registry backends(options.backend, every_backend(),
                                        {self->rank(), self->world_size(), self->local_rank()});
  backends.set_job_token(self->group_token());
  auto group = backends.make(all_ranks(*self, "bench"), self->keys(), {});
  if (!options.gloo) return measure_group(*group, options);
  std::function<void(tensor&)> call;
  try {
    call = make_gloo_call(all_ranks(*self, "gloo"), self->keys(), options.operation);
  } catch (const bad_input& absent) {
    if (group->rank() == 0) std::printf("%s\n", nlohmann::json{{"no_gloo", absent.what()}}.dump().c_str());
    return;
  }
  measure_gloo(*group, call, options);
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** arguments) {
  using namespace troupe;
  try {
    if (count != 2)
      throw bad_input("expected its options as one JSON object; `troupe bench all_reduce` runs it");
    bench::rounds_options options = nlohmann::json::parse(arguments[1]);
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
