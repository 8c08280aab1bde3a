#include "support/cuda_emulation/execution/block.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>

#include "support/cuda_emulation/execution/fault.hpp"

namespace troupe::emulation {
namespace {

constexpr unsigned never = 0;  ///< a generation that never changes

}  // namespace

constinit thread_local block* running = nullptr;

void block::prepare(const launch_shape& shape, const execution_options& options, const char* kernel_type,
                    thread_body body, const void* arguments) {
  shape_ = shape;
  options_ = options;
  kernel_type_ = kernel_type;
  body_ = body;
  arguments_ = arguments;
  auto num_threads = shape.num_threads;
  threads_.resize(num_threads);
  copies_.resize(std::max<std::size_t>(copies_.size(), num_threads));
  waits_in_.resize(num_threads);
  for (unsigned i = 0; i < num_threads; ++i) threads_[i].index = {i, 0, 0};
  warps_.resize((num_threads + num_lanes - 1) / num_lanes);
  for (unsigned i = 0; i < warps_.size(); ++i) {
    auto num_present = std::min(num_lanes, num_threads - i * num_lanes);
    warps_[i].present = all_lanes >> (num_lanes - num_present);
  }
  order_.resize(num_threads);
  std::iota(order_.begin(), order_.end(), 0U);
  if (options.order == thread_order::descending) std::reverse(order_.begin(), order_.end());
  generator_.seed(options.seed);
}

void block::run(uint3 index) {
  index_ = index;
  for (auto& each : threads_) {
    each.waits_for = &never;
    each.seen = never + 1;
  }
  for (auto& each : warps_) each.alive = each.present;
  num_ended_ = 0;
  if (options_.order == thread_order::shuffled) std::shuffle(order_.begin(), order_.end(), generator_);
  position_ = 0;
  current = &threads_[order_[0]];
  current->stack = &idle_stack();
  running = this;
  fiber::switch_between(own_stack_, *current->stack);
  running = nullptr;
}

std::string block::kernel() const {
  auto free_text = [](char* text) { std::free(text); };
  std::unique_ptr<char, decltype(free_text)> text(
      abi::__cxa_demangle(kernel_type_, nullptr, nullptr, nullptr), free_text);
  return text ? text.get() : kernel_type_;
}

// The body of every stack: runs threads that have not begun, until the next thread to run has its own stack.
void block::run_threads() {
  fiber::begin();
  auto& all = *running;
  for (;;) {
    auto& stack = *all.current->stack;
    all.body_(all.arguments_);
    all.end_current();
    all.current = all.next();
    if (!all.current && all.num_ended_ < all.threads_.size()) all.fail_deadlocked();
    if (all.current && !all.current->stack) {
      all.current->stack = &stack;
      continue;
    }
    all.idle_.push_back(&stack);
    fiber::switch_between(stack, all.current ? *all.current->stack : all.own_stack_);
  }
}

void block::end_current() {
  auto& ended = *current;
  if (!copies_of(ended).empty()) fail("expected a wait for each cp.async, got a thread that ended without");
  if (num_arrived_ > 0)
    fail(barrier_call_, "expected all threads of the block, got one that ended meanwhile");
  auto& its_warp = warp_of(ended);
  if (its_warp.num_arrived > 0)
    fail(its_warp.exchanges[its_warp.generation % 2].by,
         "expected all lanes of the warp, got one that ended meanwhile");
  its_warp.alive &= ~(1U << ended.index.x % num_lanes);
  ended.stack = nullptr;
  ended.waits_for = &never;
  ended.seen = never;
  ++num_ended_;
}

bool block::synchronize(const call& by, bool value) {
  if (num_ended_ > 0) fail(by, "expected all threads of the block, got some that have ended");
  auto& any = any_[barrier_generation_ % 2];
  if (num_arrived_ == 0) {
    barrier_call_ = by;
    any = false;
  } else if (!is_same(barrier_call_, by)) {
    fail(by, "expected all threads of the block in one barrier, got some in " + to_string(barrier_call_));
  }
  any = any || value;
  if (++num_arrived_ < threads_.size()) {
    wait_for(barrier_generation_, by);
  } else {
    num_arrived_ = 0;
    ++barrier_generation_;
  }
  return any;
}

void block::wait_for(const unsigned& generation, const call& by) {
  auto& me = *current;
  waits_in_[me.index.x] = by;
  me.waits_for = &generation;
  me.seen = generation;
  auto* other = next();
  if (!other) fail_deadlocked();
  if (!other->stack) other->stack = &idle_stack();
  current = other;
  fiber::switch_between(*me.stack, *other->stack);
}

gpu_thread* block::next() {
  if (options_.order == thread_order::warp_by_warp)
    if (auto* found = next_of_warp()) return found;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (++position_ == order_.size()) position_ = 0;
    auto& each = threads_[order_[position_]];
    if (*each.waits_for != each.seen) return &each;
  }
  return nullptr;
}

gpu_thread* block::next_of_warp() {
  auto first = position_ / num_lanes * num_lanes;
  auto count = std::min<std::size_t>(num_lanes, order_.size() - first);
  for (std::size_t i = 1; i <= count; ++i) {
    auto at = first + (position_ - first + i) % count;
    auto& each = threads_[order_[at]];
    if (*each.waits_for == each.seen) continue;
    position_ = at;
    return &each;
  }
  return nullptr;
}

fiber& block::idle_stack() {
  if (idle_.empty()) return stacks_.emplace_back(&block::run_threads, static_cast<unsigned>(stacks_.size()));
  auto* found = idle_.back();
  idle_.pop_back();
  return *found;
}

void block::fail_deadlocked() const {
  std::map<std::string, unsigned> waiting;
  for (const auto& each : threads_)
    if (each.stack) ++waiting[to_string(waits_in_[each.index.x])];
  std::string text = "expected a thread that can run, got a deadlock:";
  for (const auto& [place, count] : waiting)
    text += " " + std::to_string(count) + " threads wait in " + place + ";";
  fail(text + " " + std::to_string(num_ended_) + " have ended");
}

}  // namespace troupe::emulation
