#pragma once
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct copy_by_name_options {
  /// False: tensors that only one side has are left unchanged and reported in the result.
  bool strict = true;
};

/// Names that only one side has, in that side's order.
struct unmatched_names {
  std::vector<std::string> missing;     ///< in `to` but not in `saved`
  std::vector<std::string> unexpected;  ///< in `saved` but not in `to`
};

/// Copies the elements of `saved` to the tensors of the same names, on any device; 16-bit floats are
/// converted if the target is f32. Throws std::runtime_error and copies nothing if a name occurs twice, a
/// shape or dtype differs, or, if strict, a tensor is missing or unexpected; the message names them all.
unmatched_names copy_by_name(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved,
                             copy_by_name_options options = {});

/// A tensor of a name that copy_by_name would copy to.
struct named_form {
  std::string name;
  shape extents;
  dtype type = dtype::f32;
};

/// The checks of copy_by_name alone, for tensors that are only described.
unmatched_names compare_by_name(const std::vector<named_form>& to, const std::vector<named_tensor>& saved,
                                copy_by_name_options options = {});

}  // namespace troupe
