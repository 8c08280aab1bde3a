#pragma once
#include <span>
#include <string>
#include <vector>

#include "troupe/contents/tensor_contents.hpp"
#include "troupe/layout/part_id.hpp"

namespace troupe::layout {

/// The tensors that a part holds.
struct part_contents {
  part_id part;
  std::span<const tensor_contents> tensors;
};

/// Whether parts hold each of their tensors exactly once, in each replica and each stage that has the tensor.
/// Its slices and shards that hold some hold all its elements once (they hold it alike), or together they do.
/// Stages hold alike what several of them have (a tied weight). Empty if so; else what is missing or double,
/// with its name, its box and the parts.
std::string cover_problem(const std::vector<part_contents>& parts);

}  // namespace troupe::layout
