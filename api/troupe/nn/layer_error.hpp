#pragma once
#include <string>

namespace troupe::nn {

/// Within a catch block: throws what was caught again, with the path of the layer in which it came up before
/// its text: "in layer blocks.3.mlp.0: ...". Of nested layers the innermost is named. Errors of the standard
/// library's types and bad_input keep their type; those of other types, and all if `path` is empty, are
/// thrown again as they are.
[[noreturn]] void rethrow_in_layer(const std::string& path);

}  // namespace troupe::nn
