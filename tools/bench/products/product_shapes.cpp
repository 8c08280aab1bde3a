#include "bench/products/product_shapes.hpp"

#include <fstream>
#include <sstream>

#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t most_extent = 1 << 20;

bool is_extent(std::int64_t value) { return value >= 1 && value <= most_extent; }

product_shape shape_of(const std::string& line, const std::string& place) {
  product_shape shape;
  std::string transposes, more;
  std::istringstream words(line);
  words >> shape.name >> shape.rows >> shape.columns >> shape.inner >> transposes;
  auto is_known = transposes == "NN" || transposes == "NT" || transposes == "TN" || transposes == "TT";
  if (!words || words >> more || !is_extent(shape.rows) || !is_extent(shape.columns) ||
      !is_extent(shape.inner) || !is_known)
    throw bad_input(place +
                    ": expected a name, rows, columns and inner extent from 1 to 1048576, and NN, NT, TN or "
                    "TT, got \"" +
                    line + "\"");
  shape.transpose_a = transposes[0] == 'T';
  shape.transpose_b = transposes[1] == 'T';
  return shape;
}

}  // namespace

std::vector<product_shape> read_product_shapes(const std::filesystem::path& file) {
  std::ifstream from(file);
  if (!from)
    throw bad_input("--shapes " + file.string() +
                    ": cannot be read; expected a file such as Troupe's tools/bench/products/shapes.txt");
  std::vector<product_shape> shapes;
  int number = 0;
  for (std::string line; std::getline(from, line);) {
    ++number;
    if (!line.empty() && line[0] != '#')
      shapes.push_back(shape_of(line, file.string() + ":" + std::to_string(number)));
  }
  if (shapes.empty()) throw bad_input("--shapes " + file.string() + ": expected at least one shape");
  return shapes;
}

}  // namespace troupe::bench
