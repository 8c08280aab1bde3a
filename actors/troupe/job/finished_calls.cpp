#include "troupe/job/finished_calls.hpp"

#include <string>

#include "troupe/wire/codec.hpp"

namespace troupe {

std::vector<std::byte> block_of_call(const call_log& results, std::size_t index) {
  auto result = results.at(index);
  result.last_step.clear();
  return encode(result);
}

void add_call(std::span<const std::byte> block, call_log& to) {
  auto result = decode<call_result>(block);
  if (!to.add(result) && result.index >= to.size())
    throw decode_error("expected the result of call " + std::to_string(to.size()) + ", got that of call " +
                       std::to_string(result.index));
}

}  // namespace troupe
