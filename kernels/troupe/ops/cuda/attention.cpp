#include <algorithm>

#include "troupe/ops/cuda/attention_scores.hpp"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/matrix_product.hpp"

// Attention as matrix products of cuBLASLt, for some heads of one sample at a time, and one pass over their
// scores between them. Queries, keys and values are used where they lie, by strides.

namespace troupe::cuda {
namespace {

constexpr std::int64_t most_score_bytes = std::int64_t{512} << 20;

/// Some heads of one sample.
struct head_group {
  std::int64_t sample, first_head, num_heads;
};

/// Where heads lie in qkv, in `out` and in what is kept for each head and position.
class head_layout {
 public:
  head_layout(const tensor& out, int num_heads)
      : positions_(out.extents()[1]),
        width_(out.extents()[2]),
        num_heads_(num_heads),
        samples_(out.extents()[0]) {}

  std::int64_t positions() const { return positions_; }
  std::int64_t head_width() const { return width_ / num_heads_; }
  std::int64_t num_heads() const { return num_heads_; }

  /// Calls `run` for groups of heads whose scores are not too large together.
  template <class Run>
  void for_each_group(const Run& run) const {
    if (positions_ == 0) return;
    auto at_once = std::clamp<std::int64_t>(most_score_bytes / (4 * positions_ * positions_), 1, num_heads_);
    for (std::int64_t sample = 0; sample < samples_; ++sample)
      for (std::int64_t head = 0; head < num_heads_; head += at_once)
        run(head_group{sample, head, std::min(at_once, num_heads_ - head)});
  }

  /// The elements from the group's first query (part 0), key (1) or value (2) on.
  tensor part(const tensor& qkv, const head_group& of, int part) const {
    return from(qkv, of.sample * positions_ * 3 * width_ + part * width_ + of.first_head * head_width());
  }
  matrix_strides part_strides() const { return {3 * width_, head_width()}; }

  tensor out(const tensor& all, const head_group& of) const {
    return from(all, of.sample * positions_ * width_ + of.first_head * head_width());
  }
  matrix_strides out_strides() const { return {width_, head_width()}; }

  /// Of [B, H, T].
  tensor sums(const tensor& all, const head_group& of) const {
    return from(all, (of.sample * num_heads_ + of.first_head) * positions_);
  }
  /// Of [B, T, H].
  tensor delta(const tensor& all, const head_group& of) const {
    return from(all, of.sample * positions_ * num_heads_ + of.first_head);
  }

  /// [heads, T, T]
  tensor scores(const head_group& of, dtype type, device where) const {
    return tensor::empty({of.num_heads, positions_, positions_}, type, where);
  }

 private:
  static tensor from(const tensor& all, std::int64_t first) {
    return all.reshape({all.num_elements()}).rows(first, all.num_elements() - first);
  }

  std::int64_t positions_, width_, num_heads_, samples_;
};

/// scores = left right^T, of rows of heads.
tensor score_product(const head_layout& heads, const head_group& of, const tensor& left,
                     const matrix_strides& left_strides, const tensor& right,
                     const matrix_strides& right_strides) {
  auto scores = heads.scores(of, dtype::f32, left.where());
  strided_product({{.rows = heads.positions(),
                    .columns = heads.positions(),
                    .inner = heads.head_width(),
                    .batch = of.num_heads,
                    .right_is_transposed = true},
                   left_strides,
                   right_strides},
                  left, right, {}, scores);
  return scores;
}

/// result = weights rows, or weights^T rows.
void weighted_rows(const head_layout& heads, const head_group& of, const tensor& weights, bool is_transposed,
                   const tensor& rows, const matrix_strides& row_strides, tensor result,
                   const matrix_strides& result_strides) {
  strided_product({{.rows = heads.positions(),
                    .columns = heads.head_width(),
                    .inner = heads.positions(),
                    .batch = of.num_heads,
                    .left_is_transposed = is_transposed},
                   {},
                   row_strides,
                   result_strides},
                  weights, rows, {}, result);
}

void forward(const tensor& qkv, const attention_options& options, tensor& out, tensor& log_sum_exp) {
  head_layout heads(out, options.num_heads);
  auto strides = heads.part_strides();
  heads.for_each_group([&](const head_group& of) {
    auto scores = score_product(heads, of, heads.part(qkv, of, 0), strides, heads.part(qkv, of, 1), strides);
    auto probabilities = heads.scores(of, qkv.type(), qkv.where());
    auto sums = heads.sums(log_sum_exp, of);
    softmax_of_scores(scores, {options.scale, options.causal}, probabilities, sums);
    weighted_rows(heads, of, probabilities, false, heads.part(qkv, of, 2), strides, heads.out(out, of),
                  heads.out_strides());
  });
}

void backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
              const attention_options& options, tensor& dqkv) {
  head_layout heads(out, options.num_heads);
  auto strides = heads.part_strides(), out_strides = heads.out_strides();
  auto delta =
      tensor::empty({out.extents()[0], out.extents()[1], heads.num_heads()}, dtype::f32, out.where());
  attention_delta(dout, out, delta);
  heads.for_each_group([&](const head_group& of) {
    auto query = heads.part(qkv, of, 0), key = heads.part(qkv, of, 1), value = heads.part(qkv, of, 2);
    auto dout_rows = heads.out(dout, of);
    auto scores = score_product(heads, of, query, strides, key, strides);
    auto dprobabilities = score_product(heads, of, dout_rows, out_strides, value, strides);
    auto probabilities = heads.scores(of, qkv.type(), qkv.where());
    auto dscores = heads.scores(of, qkv.type(), qkv.where());
    score_gradients(scores, dprobabilities, heads.sums(log_sum_exp, of), heads.delta(delta, of),
                    heads.num_heads(), {options.scale, options.causal}, probabilities, dscores);
    weighted_rows(heads, of, dscores, false, key, strides, heads.part(dqkv, of, 0), strides);
    weighted_rows(heads, of, dscores, true, query, strides, heads.part(dqkv, of, 1), strides);
    weighted_rows(heads, of, probabilities, true, dout_rows, out_strides, heads.part(dqkv, of, 2), strides);
  });
}

}  // namespace

attention_kernels attention() { return {.forward = forward, .backward = backward}; }

}  // namespace troupe::cuda
