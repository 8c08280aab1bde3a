#include "support/fake_nccl/fake_nccl.hpp"

#include <algorithm>

#include "support/fake_nccl/members.hpp"

namespace troupe::fake_nccl {

void reset() {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  all.calls.clear();
  all.problems.clear();
  all.failures.clear();
  all.num_in_progress = 0;
  all.is_never_ready = all.is_never_finalized = false;
}

std::vector<recorded_call> calls(std::string_view name) {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  auto found = all.calls;
  if (!name.empty()) std::erase_if(found, [&](const auto& each) { return each.name != name; });
  return found;
}

std::vector<std::string> problems() {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  return all.problems;
}

std::size_t num_live_communicators() {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  auto lives = [](const auto& each) { return !each->is_ended; };
  return static_cast<std::size_t>(std::ranges::count_if(all.communicators, lives));
}

void fail_call(std::string_view name, ncclResult_t status, int calls_before) {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  all.failures.push_back({std::string(name), status, calls_before});
}

void set_num_in_progress(int answers) {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  all.num_in_progress = answers;
}

void set_never_ready(bool is_never_ready) {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  all.is_never_ready = is_never_ready;
}

void set_never_finalized(bool is_never_finalized) {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  all.is_never_finalized = is_never_finalized;
}

void fail_communicators(ncclResult_t status) {
  auto& all = the_library();
  std::lock_guard lock(all.mutex);
  for (const auto& each : all.communicators)
    if (!each->is_ended) each->failure = status;
}

}  // namespace troupe::fake_nccl
