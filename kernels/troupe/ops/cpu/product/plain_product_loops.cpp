#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "troupe/ops/cpu/product/loops_of.hpp"

namespace troupe::cpu {
namespace {

/// Floats one by one. As V in the loops' headers.
template <int Width>
struct plain_vector {
  static constexpr int width = Width, max_rows = 4, strip_vectors = 2;
  using eight = plain_vector<8>;
  using narrower = plain_vector<1>;
  using single = plain_vector<1>;
  float lanes[width];

  template <class Element>
  [[gnu::always_inline]] static plain_vector each(const Element& element) {
    plain_vector result;
    for (int i = 0; i < width; ++i) result.lanes[i] = element(i);
    return result;
  }
  static plain_vector zero() { return {}; }
  static plain_vector load(const float* from) {
    return each([&](int i) { return from[i]; });
  }
  static plain_vector broadcast(const float* from) {
    return each([&](int) { return *from; });
  }
  static void store(const plain_vector& x, float* to) { std::memcpy(to, x.lanes, sizeof x.lanes); }
  static plain_vector fused(const plain_vector& a, const plain_vector& b, const plain_vector& sum) {
    return each([&](int i) { return std::fma(a.lanes[i], b.lanes[i], sum.lanes[i]); });
  }
  static plain_vector sum(const plain_vector& a, const plain_vector& b) {
    return each([&](int i) { return a.lanes[i] + b.lanes[i]; });
  }
  static plain_vector relu(const plain_vector& x) {
    return each([&](int i) { return x.lanes[i] <= 0 ? 0 : x.lanes[i]; });
  }
  static void load_transposed(const float* from, std::int64_t step, plain_vector* to) {
    for (int k = 0; k < width; ++k) to[k] = each([&](int lane) { return from[lane * step + k]; });
  }
  static void transpose(const float* from, std::int64_t step, std::int64_t present, float* to,
                        std::int64_t to_step) {
    for (int k = 0; k < width; ++k)
      store(each([&](int lane) { return lane < present ? from[lane * step + k] : 0; }), to + k * to_step);
  }
};

}  // namespace

const product_loops& plain_product_loops() { return loops_of<plain_vector<8>>; }

}  // namespace troupe::cpu
