#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::bench {

/// C = op(A) op(B) with C [rows, columns]; a transposed operand lies as [inner, rows] or [columns, inner].
struct product_shape {
  std::string name;
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(inner);
  }
  std::string transposes() const { return std::string(transpose_a ? "T" : "N") + (transpose_b ? "T" : "N"); }
};

/// The shapes in a file such as shapes.txt. Throws bad_input, naming the line, for anything else.
std::vector<product_shape> read_product_shapes(const std::filesystem::path& file);

}  // namespace troupe::bench
