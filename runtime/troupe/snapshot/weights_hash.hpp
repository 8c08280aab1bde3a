#pragma once
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// SHA-256, as hex, over the elements of all parameters, little-endian, in the lexicographic order of their
/// names: equal if and only if two models' weights have the same bits, for any partition into
/// stages. Throws std::invalid_argument for an undefined tensor or a name that occurs twice.
std::string weights_sha256(std::vector<named_tensor> parameters);

}  // namespace troupe
