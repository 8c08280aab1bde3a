#pragma once
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct copy_by_name_options {
  /// False: what only one side has stays as it is, and is told.
  bool strict = true;
};

/// Names that only one side has, in the order of that side.
struct unmatched_names {
  std::vector<std::string> missing;     ///< not saved
  std::vector<std::string> unexpected;  ///< saved, with no place to go
};

/// Copies the elements of `saved` to the tensors of the same names, wherever they lie; 16-bit floats become
/// f32 where the target is f32. Throws std::runtime_error, and copies nothing, naming all tensors that are
/// there twice or of another shape or dtype, and, if strict, those that are missing or unexpected.
unmatched_names copy_by_name(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved,
                             copy_by_name_options options = {});

}  // namespace troupe
