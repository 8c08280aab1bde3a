#pragma once
#include <string>

namespace troupe::nn::detail {

/// Call within a catch block: rethrows the exception with the path of the layer prefixed to its text: "in
/// layer blocks.3.mlp.0: ...". Of nested layers only the innermost is named. Standard exceptions and
/// bad_input keep their type; other exceptions, and all if `path` is empty, are rethrown unchanged.
[[noreturn]] void rethrow_in_layer(const std::string& path);

}  // namespace troupe::nn::detail
