#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::usage {

/// Levenshtein distance: the minimum number of letters to insert, delete or replace.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The one of `known` that `word` is probably a typing error of; empty if none is near.
std::string nearest_to(std::string_view word, const std::vector<std::string>& known);

/// Which of `known` was probably meant by `word`: what programs of others call so ("lr" is learning_rate), or
/// the nearest; empty if there is none. Both may be options ("--learning-rate").
std::string meant_by(std::string_view word, const std::vector<std::string>& known);

}  // namespace troupe::usage
