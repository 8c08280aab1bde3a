#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "gpus.hpp"
#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::emulation {
namespace {

thread_local int current = 0;
thread_local cudaError_t last_error = cudaSuccess;

int num_gpus_of_environment() {
  auto count = process_environment()("TROUPE_EMULATED_GPUS");
  return count ? std::stoi(*count) : 1;
}

/// TROUPE_EMULATED_LOSS=RANK:CALLS, in the first process of that rank.
std::optional<std::uint64_t> loss_of_environment() {
  auto environment = process_environment();
  auto planned = environment("TROUPE_EMULATED_LOSS");
  if (!planned || environment("TROUPE_INCARNATION").value_or("0") != "0") return {};
  auto colon = planned->find(':');
  if (planned->substr(0, colon) != environment("RANK").value_or("0")) return {};
  return std::stoull(planned->substr(colon + 1));
}

/// TROUPE_EMULATED_STREAMS=late|early|drawn:SEED; each rank draws other numbers.
void read_stream_order(machine& of) {
  auto environment = process_environment();
  auto wanted = environment("TROUPE_EMULATED_STREAMS").value_or("late");
  if (wanted == "late") return;
  of.order = wanted == "early" ? stream_order::early : stream_order::drawn;
  if (wanted == "early") return;
  if (!wanted.starts_with("drawn:"))
    refuse("expected TROUPE_EMULATED_STREAMS of late, early or drawn:SEED, got " + wanted);
  of.draws.seed(static_cast<unsigned>(std::stoul(wanted.substr(6)) * 64 +
                                      std::stoul(environment("RANK").value_or("0"))));
}

void resize(machine& of, int count) {
  if (count < 0 || count > 16) refuse("expected 0 to 16 GPUs, got " + std::to_string(count));
  auto size = static_cast<std::size_t>(count);
  of.gpus.assign(size, emulated_gpu{.peers = std::vector<bool>(size)});
}

cudaError_t planned_status(machine& of, const char* function) {
  auto at = std::ranges::find(of.failures, function, &planned_failure::function);
  if (at == of.failures.end() || at->calls_before-- > 0) return cudaSuccess;
  auto status = at->status;
  of.failures.erase(at);
  return status;
}

cudaError_t guarded(machine& on, const char* function, context_need need,
                    const std::function<cudaError_t()>& body) {
  std::unique_lock lock(on.mutex);
  ++on.num_calls[function];
  if (on.calls_before_loss && (*on.calls_before_loss == 0 || --*on.calls_before_loss == 0))
    return cudaErrorIllegalAddress;
  if (auto status = planned_status(on, function); status != cudaSuccess) return status;
  if (need == context_need::current_gpu) {
    if (on.gpus.empty()) return cudaErrorNoDevice;
    on.gpus[static_cast<std::size_t>(current)].has_context = true;
  }
  lock.unlock();
  return body();
}

}  // namespace

machine& the_machine() {
  // Never destroyed, since static objects of tests may still use the runtime in their destructors.
  static auto* made = [] {
    auto* all = new machine;
    resize(*all, num_gpus_of_environment());
    all->calls_before_loss = loss_of_environment();
    read_stream_order(*all);
    std::atexit([] { the_machine().blocks.check_ends(); });
    return all;
  }();
  return *made;
}

int current_gpu() { return current; }
void set_current_gpu(int gpu) { current = gpu; }

void refuse(const std::string& text) {
  std::fprintf(stderr, "fake CUDA runtime: %s\n", text.c_str());
  std::abort();
}

cudaError_t call(const char* function, context_need need, const std::function<cudaError_t()>& body) {
  auto status = guarded(the_machine(), function, need, body);
  run_ahead();
  if (status != cudaSuccess) last_error = status;
  return status;
}

void set_num_gpus(int count) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  if (static_cast<int>(all.gpus.size()) == count) return;
  if (!all.num_calls.empty())
    refuse("expected set_num_gpus before any call of the runtime, got it after one");
  resize(all, count);
}

bool has_context(int gpu) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  return all.gpus.at(static_cast<std::size_t>(gpu)).has_context;
}

std::size_t num_allocations(int gpu) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  return all.blocks.count(gpu);
}

std::size_t num_pinned_allocations() { return num_allocations(memory_block::pinned); }

std::size_t num_live_handles() {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  auto count = [](const auto& handles) {
    return std::ranges::count_if(handles, [](const auto& each) { return !each->is_destroyed; });
  };
  return static_cast<std::size_t>(count(all.streams) + count(all.events) + count(all.executables));
}

std::size_t num_queued() {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  std::size_t sum = 0;
  for (const auto& each : all.streams) sum += each->queue.size();
  return sum;
}

void fail_call(std::string_view function, cudaError_t status, int calls_before) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  all.failures.push_back({std::string(function), status, calls_before});
}

void lose_gpus(std::uint64_t calls_before) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  all.calls_before_loss = calls_before;
}

std::size_t num_calls(std::string_view function) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  auto at = all.num_calls.find(function);
  return at == all.num_calls.end() ? 0 : at->second;
}

void set_peer_access_possible(bool possible) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  all.is_peer_access_possible = possible;
}

bool has_peer_access(int gpu, int peer) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  return all.gpus.at(static_cast<std::size_t>(gpu)).peers.at(static_cast<std::size_t>(peer));
}

}  // namespace troupe::emulation

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(troupe::emulation::last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return troupe::emulation::last_error; }

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidPitchValue:
      return "invalid pitch argument";
    default:
      break;
  }
  thread_local std::string text;
  text = "emulated error " + std::to_string(static_cast<int>(status));
  return text.c_str();
}
}
