#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/devices.hpp"
#include "troupe/ops/kernels/all.hpp"

// Tensors of more blocks than a grid has. They are larger than their memory: nothing may be launched for
// them.

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr auto many = (std::int64_t{1} << 32) + 1;  // one, if cut to 32 bits

tensor larger_than_memory(const tensor& memory, shape extents, dtype type) {
  auto bytes = memory.bytes();
  return tensor::wrap(nullptr, const_cast<std::byte*>(bytes.data()), std::move(extents), type,
                      memory.device());
}

}  // namespace

TEST_CASE("kernels with a block for each row refuse more rows than a grid has blocks") {
  auto memory = tensor::zeros({64}, dtype::f32, first_gpu());
  auto rows = [&] { return larger_than_memory(memory, {many, 1}, dtype::f32); };
  const auto& kernels = kernels_on(first_gpu());
  auto refusal = ContainsSubstring("blocks of a GPU's kernel (cut them into parts), got 4294967297 blocks");

  auto y = rows();
  CHECK_THROWS_WITH(kernels.softmax.softmax_forward(rows(), y), refusal);
  auto values = rows(), indices = larger_than_memory(memory, {many, 1}, dtype::i64);
  CHECK_THROWS_WITH(kernels.top_k.select(rows(), values, indices), refusal);
  auto averages = rows();
  CHECK_THROWS_WITH(kernels.pooling.global_average_forward(many, 1, rows(), averages), refusal);
}

TEST_CASE("rows of more elements than 32 bits count are refused by kernels that count with 32 bits") {
  auto memory = tensor::zeros({64}, dtype::f32, first_gpu());
  auto row = larger_than_memory(memory, {1, many}, dtype::f32);
  auto values = larger_than_memory(memory, {1, 1}, dtype::f32),
       indices = larger_than_memory(memory, {1, 1}, dtype::i64);
  CHECK_THROWS_WITH(kernels_on(first_gpu()).top_k.select(row, values, indices),
                    ContainsSubstring("[top_k] expected rows of at most 2^32 elements"));
}
