#include "troupe/ops/cpu/attention_backward.hpp"
#include "troupe/ops/cpu/attention_blocks.hpp"
#include "troupe/ops/cpu/attention_heads.hpp"
#include "troupe/ops/cpu/attention_rows.hpp"
#include "troupe/ops/cpu/block_conversion.hpp"
#include "troupe/ops/cpu/block_product.hpp"
#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/parallel.hpp"

#include <array>

namespace troupe::cpu {
namespace {

/// The attention of one head, a block of queries after the other: with each block of keys, what has been
/// summed is scaled down to the largest score so far (Milakov and Gimelshein, Online normalizer calculation
/// for softmax, 2018).
class forward_head {
 public:
  forward_head(const tensor& qkv, const attention_options& options, tensor& out, std::int64_t index)
      : place_(out, options, index),
        options_(options),
        query_(qkv, place_.query),
        key_(qkv, place_.key),
        value_(qkv, place_.value),
        out_(out),
        sums_(tensor::empty({queries_per_block, place_.out.width})) {}

  void run(float* log_sum_exp) {
    for (std::int64_t first = 0; first < place_.out.num_positions; first += queries_per_block) {
      softmax_.fill({});
      for_each_key_block(first, place_.out.num_positions, options_.causal,
                         [&](const block_pair& blocks) { attend(blocks); });
      write(first, log_sum_exp);
    }
  }

 private:
  float* sum(std::int64_t row) { return sums_.values<float>().data() + row * place_.out.width; }

  void attend(const block_pair& blocks) {
    block_product({.rows = blocks.num_queries,
                   .columns = blocks.num_keys,
                   .inner = place_.out.width,
                   .left_stride = query_.stride(),
                   .right_stride = key_.stride(),
                   .stride = keys_per_block,
                   .right_is_transposed = true},
                  query_.row(blocks.first_query), key_.row(blocks.first_key), scores_.data());
    for (std::int64_t row = 0; row < blocks.num_queries; ++row) {
      auto factor = continue_softmax(scores_.data() + row * keys_per_block, blocks.num_seen(row),
                                     blocks.num_keys, options_.scale, softmax_[row]);
      if (blocks.first_key > 0) scale_row(sum(row), factor, place_.out.width);
    }
    block_product({.rows = blocks.num_queries,
                   .columns = place_.out.width,
                   .inner = blocks.num_keys,
                   .left_stride = keys_per_block,
                   .right_stride = value_.stride(),
                   .stride = place_.out.width,
                   .accumulate = blocks.first_key > 0},
                  scores_.data(), value_.row(blocks.first_key), sum(0));
  }

  void write(std::int64_t first, float* log_sum_exp) {
    auto width = place_.out.width, last = std::min(first + queries_per_block, place_.out.num_positions);
    for (auto position = first; position < last; ++position) {
      const auto& softmax = softmax_[position - first];
      auto* row = sum(position - first);
      scale_row(row, 1 / softmax.sum, width);
      log_sum_exp[position] = log_sum_exp_of(softmax);
      auto element = place_.out.first + position * place_.out.stride;
      if (out_.type() == dtype::f32)
        std::copy_n(row, width, out_.values<float>().data() + element);
      else
        write_block(out_, element, width, row);
    }
  }

  head_place place_;
  attention_options options_;
  head_rows query_, key_, value_;
  tensor out_, sums_;
  alignas(64) std::array<float, queries_per_block * keys_per_block> scores_;
  std::array<running_softmax, queries_per_block> softmax_;
};

void forward(const tensor& qkv, const attention_options& options, tensor& out, tensor& log_sum_exp) {
  auto positions = out.extents()[1];
  if (out.num_elements() == 0) return;
  auto* sums = log_sum_exp.values<float>().data();
  parallel_for(out.extents()[0] * options.num_heads, 1, [&](std::int64_t index) {
    alone_in_products alone;
    forward_head(qkv, options, out, index).run(sums + index * positions);
  });
}

}  // namespace

attention_kernels attention() { return {.forward = forward, .backward = attention_backward}; }

}  // namespace troupe::cpu
