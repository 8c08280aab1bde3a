#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// What became of an order that was taken.
///
///   done       it was carried out
///   refused    it was not carried out, and nothing was changed
///   failed     it was tried, and did not succeed
///   timed_out  it was passed on, and nobody has said in time that it was carried out
///   lost       the process or actor that had it was lost; it was carried out or not
enum class order_result : std::uint8_t { done, refused, failed, timed_out, lost };

std::string_view to_string(order_result result);

struct order_outcome {
  order_result result = order_result::done;
  std::string text;                   ///< what happened, or why not and what to do
  std::optional<std::uint64_t> step;  ///< optimizer steps that a snapshot has
  bool operator==(const order_outcome&) const = default;
};

}  // namespace troupe
