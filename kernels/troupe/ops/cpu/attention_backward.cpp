#include "troupe/ops/cpu/attention_backward.hpp"

#include <array>

#include "troupe/ops/cpu/attention_blocks.hpp"
#include "troupe/ops/cpu/attention_heads.hpp"
#include "troupe/ops/cpu/attention_rows.hpp"
#include "troupe/ops/cpu/block_product.hpp"
#include "troupe/ops/cpu/parallel.hpp"

namespace troupe::cpu {
namespace {

/// The gradients of one head. With the probabilities P = e^(scale Q K^T - log_sum_exp), computed anew:
///   dV = P^T dO, dP = dO V^T, dS = scale P (dP - dO . O), dQ = dS K, dK = dS^T Q
class backward_head {
 public:
  backward_head(const tensor& dout, const tensor& qkv, const tensor& out, const attention_options& options,
                tensor& dqkv, std::int64_t index)
      : place_(out, options, index),
        options_(options),
        width_(place_.out.width),
        query_(qkv, place_.query),
        key_(qkv, place_.key),
        value_(qkv, place_.value),
        out_(out, place_.out),
        dout_(dout, place_.out),
        dquery_(dqkv, place_.query),
        dkey_(dqkv, place_.key),
        dvalue_(dqkv, place_.value) {}

  void run(const float* log_sum_exp) {
    auto positions = place_.out.num_positions;
    for (std::int64_t first = 0; first < positions; first += queries_per_block) {
      for (auto row = first; row < std::min(first + queries_per_block, positions); ++row)
        delta_[row - first] = dot(dout_.row(row), out_.row(row), width_);
      for_each_key_block(first, positions, options_.causal,
                         [&](const block_pair& blocks) { add_block(blocks, log_sum_exp + first); });
    }
    dquery_.finish();
    dkey_.finish();
    dvalue_.finish();
  }

 private:
  void add_block(const block_pair& blocks, const float* log_sum_exp) {
    against_keys(blocks, query_, key_, products_.data());
    against_keys(blocks, dout_, value_, gradients_.data());
    for (std::int64_t row = 0; row < blocks.num_queries; ++row)
      softmax_gradient(products_.data() + row * keys_per_block, gradients_.data() + row * keys_per_block,
                       blocks.num_seen(row), blocks.num_keys, options_.scale, log_sum_exp[row], delta_[row]);
    add_to_keys(blocks, products_.data(), dout_, dvalue_);
    add_to_keys(blocks, gradients_.data(), query_, dkey_);
    block_product({.rows = blocks.num_queries,
                   .columns = width_,
                   .inner = blocks.num_keys,
                   .left_stride = keys_per_block,
                   .right_stride = key_.stride(),
                   .stride = dquery_.stride(),
                   .accumulate = true},
                  gradients_.data(), key_.row(blocks.first_key), dquery_.row(blocks.first_query));
  }

  /// [queries, keys] = the rows of queries times those of keys
  void against_keys(const block_pair& blocks, const head_rows& queries, const head_rows& keys,
                    float* products) const {
    block_product({.rows = blocks.num_queries,
                   .columns = blocks.num_keys,
                   .inner = width_,
                   .left_stride = queries.stride(),
                   .right_stride = keys.stride(),
                   .stride = keys_per_block,
                   .right_is_transposed = true},
                  queries.row(blocks.first_query), keys.row(blocks.first_key), products);
  }

  /// The rows of keys += [queries, keys]^T times the rows of queries
  void add_to_keys(const block_pair& blocks, const float* weights, const head_rows& queries,
                   head_sums& keys) const {
    block_product({.rows = blocks.num_keys,
                   .columns = width_,
                   .inner = blocks.num_queries,
                   .left_stride = keys_per_block,
                   .right_stride = queries.stride(),
                   .stride = keys.stride(),
                   .left_is_transposed = true,
                   .accumulate = true},
                  weights, queries.row(blocks.first_query), keys.row(blocks.first_key));
  }

  head_place place_;
  attention_options options_;
  std::int64_t width_;
  head_rows query_, key_, value_, out_, dout_;
  head_sums dquery_, dkey_, dvalue_;
  alignas(64) std::array<float, queries_per_block * keys_per_block> products_;
  alignas(64) std::array<float, queries_per_block * keys_per_block> gradients_;
  std::array<float, queries_per_block> delta_;
};

}  // namespace

void attention_backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
                        const attention_options& options, tensor& dqkv) {
  auto positions = out.extents()[1];
  if (out.num_elements() == 0) return;
  const auto* sums = log_sum_exp.values<float>().data();
  parallel_for(out.extents()[0] * options.num_heads, 1, [&](std::int64_t index) {
    alone_in_products alone;
    backward_head(dout, qkv, out, options, dqkv, index).run(sums + index * positions);
  });
}

}  // namespace troupe::cpu
