#include "troupe/job/finished_calls.hpp"

#include <utility>

#include "troupe/wire/codec.hpp"

namespace troupe {

block_source blocks_of_calls(std::shared_ptr<const call_log> results, std::size_t num_results) {
  return [results = std::move(results), num_results](std::size_t number) -> std::vector<std::byte> {
    auto first = number * call_log::max_in_piece;
    if (first >= num_results) return {};
    auto piece = results->piece(first);
    if (piece.size() > num_results - first) piece.resize(num_results - first);
    for (auto& result : piece) result.last_step.clear();
    return encode(piece);
  };
}

void add_calls(std::span<const std::byte> block, call_log& to) {
  to.add(decode<std::vector<call_result>>(block));
}

}  // namespace troupe
