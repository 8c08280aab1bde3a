#include "troupe/usage/nearest.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      auto above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (from[i] == to[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string meant_by(std::string_view word, const std::vector<std::string>& known) {
  auto distance = [word](const std::string& one) { return edit_distance(word, one); };
  auto nearest = std::ranges::min_element(known, {}, distance);
  if (nearest == known.end() || distance(*nearest) > std::max<std::size_t>(2, word.size() / 3)) return {};
  return *nearest;
}

}  // namespace troupe
