// Products bit for bit: the definition in troupe/ops/cpu/product/packed_product.hpp, term by term, against
// every set of loops and every way to cut a product.
#include "troupe/ops/cpu/product/packed_product.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/ops/cpu/product/wide_product_loops.hpp"
#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "troupe/ops/cpu/matrix_product.hpp"
#include "troupe/ops/threads.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace troupe;
using namespace troupe::cpu;
using namespace troupe::testing;

namespace {

/// The definition, and mistakes that tests must find.
enum class order { defined, backwards, in_one_chain, other_blocks, tail_apart, unfused, added_at_the_end };

struct drawn_product {
  std::int64_t rows, columns, inner;
  bool left_is_transposed, right_is_transposed, accumulate, has_bias, relu;
  dtype type = dtype::f32;
  tensor a = {}, b = {}, bias = {}, before = {};

  matrix_product_shape shape() const {
    return {.rows = rows,
            .columns = columns,
            .inner = inner,
            .left_is_transposed = left_is_transposed,
            .right_is_transposed = right_is_transposed,
            .accumulate = accumulate,
            .relu = relu};
  }

  void draw(const std::string& name) {
    a = random_tensor({rows * inner}, name + " a", type);
    b = random_tensor({inner * columns}, name + " b", type);
    bias = random_tensor({columns}, name + " bias");
    before = random_tensor({rows * columns}, name + " c");
  }

  product_operand left() const {
    return {a.bytes().data(), type, left_is_transposed ? 1 : inner, left_is_transposed ? rows : 1};
  }
  product_operand right() const {
    return {b.bytes().data(), type, right_is_transposed ? inner : 1, right_is_transposed ? 1 : columns};
  }
  packed_product product(tensor& c) const {
    return {.a = left(),
            .b = right(),
            .rows = rows,
            .columns = columns,
            .inner = inner,
            .c = {.c = c.values<float>().data(),
                  .stride = columns,
                  .column_bias = has_bias ? bias.values<float>().data() : nullptr,
                  .accumulate = accumulate,
                  .relu = relu}};
  }
  tensor by(const product_loops& loops) const {
    auto c = before.clone();
    multiply_part(product(c), {0, rows, 0, columns}, loops);
    return c;
  }
  /// Part by part, in another order than memory's.
  tensor in_parts(std::int64_t at_once, const product_loops& loops) const {
    auto c = before.clone();
    for (auto row = (rows - 1) / at_once * at_once; row >= 0; row -= at_once)
      for (std::int64_t column = 0; column < columns; column += at_once)
        multiply_part(product(c),
                      {row, std::min(at_once, rows - row), column, std::min(at_once, columns - column)},
                      loops);
    return c;
  }
};

float term(float a, float b, float sum, order mistake) {
  return mistake == order::unfused ? a * b + sum : std::fma(a, b, sum);
}

/// One element: its factors, what is in C, and the bias.
float element_of(const std::vector<float>& a, const std::vector<float>& b, const float* before,
                 const float* bias, bool relu, order mistake) {
  const std::size_t block = mistake == order::in_one_chain   ? a.size()
                            : mistake == order::other_blocks ? 128
                                                             : 256;
  float sum = 0;
  bool has_sum = before && mistake != order::added_at_the_end;
  if (has_sum) sum = *before;
  for (std::size_t first = 0; first < a.size(); first += block) {
    auto end = std::min(a.size(), first + block), whole = end / 8 * 8;
    float chain = 0, tail = 0;
    for (auto k = first; k < end; ++k) {
      auto at = mistake == order::backwards ? first + end - 1 - k : k;
      auto& to = mistake == order::tail_apart && k >= whole ? tail : chain;
      to = term(a[at], b[at], to, mistake);
    }
    if (mistake == order::tail_apart) chain += tail;
    sum = has_sum ? sum + chain : chain;
    has_sum = true;
  }
  if (before && mistake == order::added_at_the_end) sum += *before;
  if (bias) sum += *bias;
  return relu && sum <= 0 ? 0 : sum;
}

tensor by_definition(const drawn_product& of, order mistake = order::defined) {
  auto c = of.before.clone();
  auto left = values_of(of.a), right = values_of(of.b);
  std::vector<float> a(static_cast<std::size_t>(of.inner)), b(a.size());
  for (std::int64_t i = 0; i < of.rows; ++i)
    for (std::int64_t j = 0; j < of.columns; ++j) {
      for (std::int64_t k = 0; k < of.inner; ++k) {
        auto at = static_cast<std::size_t>(k);
        a[at] = static_cast<float>(
            left[static_cast<std::size_t>(of.left_is_transposed ? k * of.rows + i : i * of.inner + k)]);
        b[at] = static_cast<float>(
            right[static_cast<std::size_t>(of.right_is_transposed ? j * of.inner + k : k * of.columns + j)]);
      }
      auto& element = c.values<float>()[static_cast<std::size_t>(i * of.columns + j)];
      element = element_of(a, b, of.accumulate ? &element : nullptr,
                           of.has_bias ? &of.bias.values<float>()[static_cast<std::size_t>(j)] : nullptr,
                           of.relu, mistake);
    }
  return c;
}

/// Extents around those at which loops, panels and blocks end.
template <class Check>
void for_each_drawn(int count, const Check& check) {
  std::mt19937 numbers(7);  // the same on every machine
  auto one_of = [&](const std::vector<std::int64_t>& choices) { return choices[numbers() % choices.size()]; };
  for (int i = 0; i < count; ++i) {
    drawn_product drawn{.rows = one_of({1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 29, 43, 127}),
                        .columns = one_of({1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 100, 1100}),
                        .inner = one_of({1, 2, 7, 8, 9, 64, 255, 256, 257, 300, 600}),
                        .left_is_transposed = numbers() % 2 == 0,
                        .right_is_transposed = numbers() % 2 == 0,
                        .accumulate = numbers() % 2 == 0,
                        .has_bias = numbers() % 2 == 0,
                        .relu = numbers() % 4 == 0};
    if (drawn.rows * drawn.columns * drawn.inner > 3'000'000) drawn.columns = 17;
    drawn.draw("product " + std::to_string(i));
    CAPTURE(i, drawn.rows, drawn.columns, drawn.inner, drawn.left_is_transposed, drawn.right_is_transposed,
            drawn.accumulate, drawn.has_bias, drawn.relu);
    check(drawn);
  }
}

drawn_product plain_product(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  drawn_product made{rows, columns, inner, false, true, true, true, false, dtype::f32};
  made.draw("plain product");
  return made;
}

}  // namespace

TEST_CASE("every instruction set gives the bits of the definition") {
  for_each_drawn(150, [](const drawn_product& drawn) {
    auto expected = by_definition(drawn);
    for (const auto* loops : all_product_loops()) CHECK(same_bits(drawn.by(*loops), expected));
  });
}

TEST_CASE("a part of a product has the bits that it has in the whole, down to single rows") {
  for_each_drawn(40, [](const drawn_product& drawn) {
    for (const auto* loops : all_product_loops()) {
      auto whole = drawn.by(*loops);
      for (std::int64_t at_once : {1, 5, 24})
        if (at_once > 1 || drawn.rows * drawn.columns < 2000)
          CHECK(same_bits(drawn.in_parts(at_once, *loops), whole));
    }
  });
}

TEST_CASE("the parts of a product are all of it, each once") {
  auto drawn = plain_product(1, 1, 1);
  tensor c = tensor::zeros({1});
  for (auto [rows, columns] : {std::pair{1, 1}, {5, 700}, {700, 5}, {64, 64}, {33, 31}})
    for (std::int64_t count : {1, 2, 3, 7}) {
      auto whole = drawn.product(c);
      whole.rows = rows;
      whole.columns = columns;
      std::vector<int> covered(static_cast<std::size_t>(rows * columns));
      for (std::int64_t index = 0; index < count; ++index) {
        auto part = part_of(whole, index, count);
        for (auto row = part.first_row; row < part.first_row + part.rows; ++row)
          for (auto column = part.first_column; column < part.first_column + part.columns; ++column)
            ++covered[static_cast<std::size_t>(row * columns + column)];
      }
      CHECK(std::ranges::count(covered, 1) == std::ssize(covered));
    }
}

TEST_CASE("mistakes in the order of a sum, or in a single rounding, would be seen") {
  auto drawn = plain_product(9, 17, 300);
  auto right = by_definition(drawn);
  for (auto wrong : {order::backwards, order::in_one_chain, order::other_blocks, order::tail_apart,
                     order::unfused, order::added_at_the_end})
    CHECK_FALSE(same_bits(by_definition(drawn, wrong), right));
}

TEST_CASE("matrix products have the same bits on any number of threads, and for any number of rows") {
  for (auto type : floating_types)
    for (auto [rows, columns, inner] : {std::tuple{300, 200, 300}, {3, 5000, 600}, {1000, 10, 700}}) {
      CAPTURE(rows, columns, inner);
      drawn_product drawn{rows, columns, inner, false, true, false, true, false, type};
      drawn.draw("threads");
      auto bias = rounded_to(values_of(drawn.bias), {columns}, type);
      auto multiply = [&](std::int64_t first, std::int64_t count) {
        auto shape = drawn.shape();
        shape.rows = count;
        auto c = tensor::empty({count, columns}, type);
        matrix_product(shape, drawn.a.reshape({rows, inner}).rows(first, count), drawn.b, bias, c);
        return c;
      };
      set_num_threads(1);
      auto alone = multiply(0, rows);
      for (int threads : {2, 3, 4}) {
        set_num_threads(threads);
        CHECK(same_bits(multiply(0, rows), alone));
      }
      set_num_threads(1);
      for (std::int64_t row : {0, 1, rows - 1}) CHECK(same_bits(multiply(row, 1), alone.rows(row, 1)));
    }
}

TEST_CASE("16-bit operands have the bits of the same numbers in f32, rounded once at the end") {
  for (auto type : {dtype::bf16, dtype::f16})
    for (auto accumulate : {false, true}) {
      drawn_product narrow{13, 45, 600, false, false, accumulate, true, true, type};
      narrow.draw("narrow");
      auto wide = narrow;
      wide.type = dtype::f32;
      wide.a = rounded_to(values_of(narrow.a), {13 * 600}, dtype::f32);
      wide.b = rounded_to(values_of(narrow.b), {45 * 600}, dtype::f32);
      for (const auto* loops : all_product_loops()) CHECK(same_bits(narrow.by(*loops), by_definition(wide)));
      auto c = rounded_to(values_of(narrow.before), {13, 45}, type);
      wide.before = rounded_to(values_of(c), {13 * 45}, dtype::f32);
      wide.bias = rounded_to(values_of(rounded_to(values_of(narrow.bias), {45}, type)), {45}, dtype::f32);
      matrix_product(narrow.shape(), narrow.a, narrow.b, rounded_to(values_of(narrow.bias), {45}, type), c);
      CHECK(same_bits(c, rounded_to(values_of(by_definition(wide)), {13, 45}, type)));
    }
}

TEST_CASE("NaN, infinities, denormal numbers and signed zeros go through a product as through single sums") {
  constexpr auto inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN(),
                 denormal = std::numeric_limits<float>::denorm_min();
  for (auto rows : {2, 20})
    for (auto relu : {false, true})
      for (auto special : {inf, -inf, nan, denormal, -denormal, 0.0F, -0.0F, 1e38F}) {
        auto drawn = plain_product(rows, 33, 40);
        drawn.relu = relu;
        for (std::int64_t at = 0; at < drawn.a.num_elements(); at += 7)
          drawn.a.values<float>()[static_cast<std::size_t>(at)] = special;
        for (std::int64_t at = 0; at < drawn.b.num_elements(); at += 11)
          drawn.b.values<float>()[static_cast<std::size_t>(at)] = at % 2 ? 0.0F : -1e10F;
        auto expected = by_definition(drawn);
        for (const auto* loops : all_product_loops()) {
          auto c = drawn.by(*loops);
          for (std::size_t i = 0; i < static_cast<std::size_t>(c.num_elements()); ++i) {
            auto one = c.values<float>()[i], other = expected.values<float>()[i];
            CHECK((std::isnan(one)
                       ? std::isnan(other)
                       : std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(other)));
          }
        }
      }
}

#if defined(__x86_64__)
TEST_CASE(
    "a product ignores mistake other libraries have set rounding and denormal numbers, and keeps their "
    "setting") {
  auto drawn = plain_product(20, 33, 300);
  for (auto& value : drawn.a.values<float>()) value *= 1e-30F;
  for (auto& value : drawn.b.values<float>()) value *= 1e-10F;
  for (auto& value : drawn.before.values<float>()) value *= 1e-40F;
  drawn.has_bias = false;
  auto expected = by_definition(drawn);
  REQUIRE(std::fpclassify(expected.values<float>()[0]) == FP_SUBNORMAL);
  auto before = _mm_getcsr();
  constexpr unsigned flush_to_zero = 0x8040, downwards = 0x2000;
  for (const auto* loops : all_product_loops()) {
    _mm_setcsr(before | flush_to_zero | downwards);
    auto c = drawn.by(*loops);
    auto after = _mm_getcsr();
    _mm_setcsr(before);
    CHECK((after & (flush_to_zero | downwards)) == (flush_to_zero | downwards));
    CHECK(same_bits(c, expected));
  }
}
#endif

TEST_CASE("rows that lie anywhere in memory, in runs, have the bits of rows in panels") {
  auto drawn = plain_product(23, 45, 250);
  drawn.has_bias = false;
  auto expected = by_definition(drawn);
  for (const auto* loops : all_product_loops()) {
    auto panels = tensor::empty({packed_size(45, loops->panel_columns, 250)});
    loops->pack_columns(drawn.right().read({0, 45, 0, 250}, nullptr), panels.values<float>().data());
    std::vector<const float*> rows;
    for (std::int64_t row = 0; row < 23; ++row)
      rows.push_back(drawn.a.values<float>().data() + row * 250 - 10);
    std::vector<element_run> runs{{10, 1}, {11, 100}, {111, 149}};
    auto c = drawn.before.clone();
    loops->multiply_gathered({rows, runs, panels.values<float>().data(), 45, 250}, drawn.product(c).c);
    CHECK(same_bits(c, expected));
  }
}
