#include "troupe/job/finished_calls.hpp"

#include <string>

#include "troupe/wire/codec.hpp"

namespace troupe::actors::job {

std::vector<std::byte> block_of_call(const call_log& results, std::size_t index) {
  auto result = results.at(index);
  result.last_step.clear();
  return wire::encode(result);
}

void add_call(std::span<const std::byte> block, call_log& to) {
  auto result = wire::decode<call_result>(block);
  if (!to.add(result) && result.index >= to.size())
    throw wire::decode_error("expected the result of call " + std::to_string(to.size()) +
                             ", got that of call " + std::to_string(result.index));
}

std::optional<call_result> result_to_repeat(const repeated_calls& calls, std::uint64_t request_hash) {
  auto next = calls.completed.size();
  if (next >= calls.recorded.size()) return {};
  auto is_computed_again = [](const call_result& result) {
    return result.kind == call_kind::barrier || !result.problem.empty();
  };
  auto before = next;
  while (before > calls.first_call && is_computed_again(calls.completed.at(before - 1))) --before;
  if (before > calls.first_call && !calls.completed.at(before - 1).from_snapshot) return {};
  auto result = calls.recorded.at(next);
  if (result.request_hash != request_hash || !result.refused.empty()) return {};
  result.from_snapshot = true;
  return result;
}

}  // namespace troupe::actors::job
