#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Levenshtein distance: the minimum number of letters to insert, delete or replace.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Which of `known` was probably meant by `word`; empty if none is near.
std::string meant_by(std::string_view word, const std::vector<std::string>& known);

}  // namespace troupe
