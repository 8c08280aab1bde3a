#include "bench/pipeline/synthetic_stage.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "troupe/trace/trace.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

/// Sleeps until `deadline_ns` of the steady clock, as exactly as the kernel can: with the default timer slack
/// it may batch wake-ups.
void sleep_until(std::int64_t deadline_ns) {
  thread_local const bool exact = ::prctl(PR_SET_TIMERSLACK, 1UL) == 0;
  static_cast<void>(exact);
  timespec deadline{deadline_ns / ns_per_s, deadline_ns % ns_per_s};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) continue;
}

}  // namespace

synthetic_stage::synthetic_stage(const synthetic_stage_options& options, device_record& record)
    : options_(options),
      record_(record),
      payload_(tensor::zeros({options.size_bytes}, dtype::u8)),
      state_{{std::to_string(options.stage) + ".state", tensor::zeros({1})}} {
  auto elements = options.gradient_bytes / static_cast<std::int64_t>(sizeof(float)) / options.num_buckets;
  for (int bucket = 0; bucket < options.num_buckets; ++bucket)
    gradients_.push_back(tensor::zeros({std::max<std::int64_t>(elements, 1)}));
}

device_step& synthetic_stage::work(std::uint64_t step, std::chrono::nanoseconds nominal) {
  auto& done = record_.steps.at(step);
  auto begin = trace::now_ns();
  if (nominal.count() > 0) sleep_until(begin + std::max(nominal.count() - lateness_ns_, nominal.count() / 2));
  done.last_end_ns = nominal.count() > 0 ? trace::now_ns() : begin;
  lateness_ns_ += (done.last_end_ns - begin - nominal.count()) / 16;
  if (done.first_begin_ns == 0) done.first_begin_ns = begin;
  done.asleep_ns += done.last_end_ns - begin;
  return done;
}

std::vector<tensor> synthetic_stage::forward(const program::microbatch& which, std::vector<tensor> inputs,
                                             tensor) {
  auto& done = work(which.step, options_.forward);
  done.peak_saved = std::max(done.peak_saved, ++record_.saved);
  if (options_.stage == options_.num_stages - 1) return {};
  return {options_.stage == 0 ? payload_ : inputs[0]};
}

std::vector<tensor> synthetic_stage::backward_input(const program::microbatch& which,
                                                    std::vector<tensor> output_gradients) {
  work(which.step, options_.input_gradient);
  if (options_.stage == 0) return {};
  return {output_gradients.empty() ? payload_ : output_gradients[0]};
}

void synthetic_stage::backward_weight(const program::microbatch& which) {
  work(which.step, options_.weight_gradient);
  --record_.saved;
}

void synthetic_stage::backward_last_weight(const program::microbatch& which,
                                           const bucket_callback& on_bucket) {
  for (int bucket = 0; bucket < options_.num_buckets; ++bucket) {
    work(which.step, options_.weight_gradient / options_.num_buckets);
    on_bucket(bucket);
  }
  --record_.saved;
}

}  // namespace troupe::bench
