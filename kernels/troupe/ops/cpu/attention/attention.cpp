#include "troupe/ops/cpu/attention/attention_backward.hpp"
#include "troupe/ops/cpu/attention/attention_blocks.hpp"
#include "troupe/ops/cpu/attention/attention_heads.hpp"
#include "troupe/ops/cpu/attention/attention_rows.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/product/block_product.hpp"

#include <array>

namespace troupe::cpu {
namespace {

/// The attention of one head, block of queries by block of queries, with an online softmax. At each block of
/// keys, the partial sums are rescaled to the largest score so far (Milakov and Gimelshein, Online normalizer
/// calculation for softmax, 2018).
class forward_head {
 public:
  forward_head(const tensor& qkv, const attention_options& options, tensor& out, std::int64_t index)
      : place_(out, options, index),
        options_(options),
        query_(qkv, place_.query),
        value_(qkv, place_.value),
        keys_(head_rows(qkv, place_.key), place_.key),
        out_(out),
        values_(tensor::empty({queries_per_block, place_.out.width})) {}

  void run(float* log_sum_exp) {
    for (std::int64_t first = 0; first < place_.out.num_positions; first += queries_per_block) {
      largest_.fill(-__builtin_inff());
      sum_.fill(0);
      for_each_key_block(first, place_.out.num_positions, options_.causal, [&](const block_pair& blocks) {
        for_each_strip(blocks.num_queries, [&](const block_strip& rows) { attend(blocks, rows); });
      });
      write(first, log_sum_exp + first);
    }
  }

 private:
  float* values_of(std::int64_t row) { return values_.values<float>().data() + row * place_.out.width; }

  void attend(const block_pair& blocks, const block_strip& strip) {
    auto rows = scores_of(blocks, strip);
    block_product({.rows = rows.count,
                   .columns = transposed_rows::in_vectors(rows.max_seen),
                   .inner = place_.out.width,
                   .left_stride = query_.stride(),
                   .right_stride = keys_.stride(),
                   .stride = rows.stride},
                  query_.row(blocks.first_query + strip.first), keys_.column(blocks.first_key),
                  scores_.data());
    std::array<float, rows_per_strip> factors;
    continue_softmax(rows, scores_.data(), options_.scale,
                     {largest_.data() + strip.first, sum_.data() + strip.first}, factors.data());
    auto is_first = blocks.first_key == 0;
    for (std::int64_t i = 0; i < rows.count && !is_first; ++i)
      scale_row(values_of(strip.first + i), factors[i], values_of(strip.first + i), place_.out.width);
    block_product({.rows = rows.count,
                   .columns = place_.out.width,
                   .inner = rows.max_seen,
                   .left_stride = rows.stride,
                   .right_stride = value_.stride(),
                   .stride = place_.out.width,
                   .accumulate = !is_first},
                  scores_.data(), value_.row(blocks.first_key), values_of(strip.first));
  }

  void write(std::int64_t first, float* log_sum_exp) {
    auto width = place_.out.width, count = std::min(queries_per_block, place_.out.num_positions - first);
    log_sum_exp_of({largest_.data(), sum_.data()}, count, log_sum_exp);
    for (std::int64_t row = 0; row < count; ++row) {
      auto element = place_.out.first + (first + row) * place_.out.stride;
      auto is_in_place = out_.dtype() == dtype::f32;
      scale_row(values_of(row), 1 / sum_[row],
                is_in_place ? out_.values<float>().data() + element : values_of(row), width);
      if (!is_in_place) write_block(out_, element, width, values_of(row));
    }
  }

  head_place place_;
  attention_options options_;
  head_rows query_, value_;
  transposed_rows keys_;
  tensor out_, values_;
  alignas(64) std::array<float, rows_per_strip * keys_per_block> scores_;
  std::array<float, queries_per_block> largest_, sum_;
};

void forward(const tensor& qkv, const attention_options& options, tensor& out, tensor& log_sum_exp) {
  auto positions = out.shape()[1];
  if (out.num_elements() == 0) return;
  auto* sums = log_sum_exp.values<float>().data();
  auto heads = out.shape()[0] * options.num_heads, width = out.shape()[2] / options.num_heads;
  parallel_for(heads, elements_of_heads(heads, positions, width, 2), [&](std::int64_t index) {
    forward_head(qkv, options, out, index).run(sums + index * positions);
  });
}

}  // namespace

attention_kernels attention() { return {.forward = forward, .backward = attention_backward}; }

}  // namespace troupe::cpu
