#include "troupe/collective/operation.hpp"

#include <array>
#include <numeric>

namespace troupe {

std::string_view to_string(collective_kind kind) {
  constexpr std::array<std::string_view, 11> names{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                   "reduce",     "gather",         "scatter",    "all_to_all",
                                                   "barrier",    "send",           "receive"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_string(const call_signature& signature) {
  std::string text(to_string(signature.kind));
  if (signature.kind == collective_kind::barrier) return text;
  bool reduces = signature.kind == collective_kind::all_reduce || signature.kind == collective_kind::reduce ||
                 signature.kind == collective_kind::reduce_scatter;
  text += '(';
  if (reduces) text += std::string(to_string(signature.op)) + ", ";
  text += std::string(to_string(signature.type)) + '[' + std::to_string(signature.count) + ']';
  if (signature.layout != 0) text += " in unequal parts";
  if (signature.root >= 0) text += ", root " + std::to_string(signature.root);
  return text + ')';
}

std::int64_t part_begin(const collective_operation& what, int member) {
  return std::accumulate(what.parts.begin(), what.parts.begin() + member, std::int64_t{0});
}

}  // namespace troupe
