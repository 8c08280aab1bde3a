#include "bench/pipeline/sleeping_stage.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "troupe/trace/trace.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

/// Until `deadline_ns` of the steady clock, as exactly as the kernel can: it may batch wake-ups otherwise.
void sleep_until(std::int64_t deadline_ns) {
  thread_local const bool exact = ::prctl(PR_SET_TIMERSLACK, 1UL) == 0;
  static_cast<void>(exact);
  timespec deadline{deadline_ns / ns_per_s, deadline_ns % ns_per_s};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) continue;
}

}  // namespace

sleeping_stage::sleeping_stage(const sleeping_stage_options& options, std::vector<stage_step>& record)
    : options_(options),
      record_(record),
      handed_on_(tensor::zeros({1})),
      state_{{std::to_string(options.stage) + ".state", tensor::zeros({1})}} {}

void sleeping_stage::work(std::uint64_t step, std::chrono::nanoseconds nominal) {
  auto& done = record_.at(step);
  auto begin = now_ns();
  if (nominal.count() > 0) sleep_until(begin + nominal.count());
  auto end = now_ns();
  if (done.first_begin_ns == 0) done.first_begin_ns = begin;
  done.last_end_ns = end;
  done.asleep_ns += end - begin;
}

tensor sleeping_stage::forward(const microbatch& which, tensor, tensor) {
  work(which.step, options_.forward);
  auto& done = record_.at(which.step);
  done.peak_saved = std::max(done.peak_saved, ++saved_);
  return options_.stage == options_.num_stages - 1 ? tensor() : handed_on_;
}

tensor sleeping_stage::backward_input(const microbatch& which, tensor) {
  work(which.step, options_.backward);
  return options_.stage == 0 ? tensor() : handed_on_;
}

void sleeping_stage::backward_weight(const microbatch&) { --saved_; }

}  // namespace troupe::bench
