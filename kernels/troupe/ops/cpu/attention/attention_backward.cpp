#include "troupe/ops/cpu/attention/attention_backward.hpp"

#include <array>

#include "troupe/ops/cpu/attention/attention_blocks.hpp"
#include "troupe/ops/cpu/attention/attention_heads.hpp"
#include "troupe/ops/cpu/attention/attention_rows.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/product/block_product.hpp"

namespace troupe::cpu {
namespace {

/// The gradients of one head. With the recomputed probabilities P = e^(scale Q K^T - log_sum_exp):
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
        out_(out, place_.out),
        dout_(dout, place_.out),
        keys_(key_, place_.key),
        values_(head_rows(qkv, place_.value), place_.value),
        dquery_(dqkv, place_.query),
        dkey_(dqkv, place_.key),
        dvalue_(dqkv, place_.value) {}

  void run(const float* log_sum_exp) {
    auto positions = place_.out.num_positions;
    for (std::int64_t first = 0; first < positions; first += queries_per_block) {
      dot_rows(dout_.row(first), dout_.stride(), out_.row(first), out_.stride(),
               std::min(queries_per_block, positions - first), width_, delta_.data());
      for_each_key_block(first, positions, options_.causal,
                         [&](const block_pair& blocks) { add_block(blocks, log_sum_exp + first); });
    }
    dquery_.finish();
    dkey_.finish();
    dvalue_.finish();
  }

 private:
  void add_block(const block_pair& blocks, const float* log_sum_exp) {
    for_each_strip(blocks.num_queries,
                   [&](const block_strip& rows) { add_to_queries(blocks, rows, log_sum_exp); });
    for_each_strip(blocks.num_keys, [&](const block_strip& keys) {
      add_to_keys(blocks, keys, products_.data(), dout_, dvalue_);
      add_to_keys(blocks, keys, gradients_.data(), query_, dkey_);
    });
  }

  void add_to_queries(const block_pair& blocks, const block_strip& strip, const float* log_sum_exp) {
    auto rows = scores_of(blocks, strip);
    auto *products = products_.data() + strip.first * rows.stride,
         *gradients = gradients_.data() + strip.first * rows.stride;
    auto query = blocks.first_query + strip.first;
    against_keys(rows, query_.row(query), query_.stride(), keys_, blocks.first_key, products);
    against_keys(rows, dout_.row(query), dout_.stride(), values_, blocks.first_key, gradients);
    softmax_gradient(rows, products, gradients, options_.scale, log_sum_exp + strip.first,
                     delta_.data() + strip.first);
    block_product({.rows = rows.count,
                   .columns = width_,
                   .inner = rows.max_seen,
                   .left_stride = rows.stride,
                   .right_stride = key_.stride(),
                   .stride = dquery_.stride(),
                   .accumulate = blocks.first_key > 0},
                  gradients, key_.row(blocks.first_key), dquery_.row(query));
  }

  /// [rows, keys] = the rows of queries times the columns of keys
  void against_keys(const score_rows& rows, const float* queries, std::int64_t stride,
                    const transposed_rows& keys, std::int64_t first_key, float* products) const {
    block_product({.rows = rows.count,
                   .columns = transposed_rows::in_vectors(rows.max_seen),
                   .inner = width_,
                   .left_stride = stride,
                   .right_stride = keys.stride(),
                   .stride = rows.stride},
                  queries, keys.column(first_key), products);
  }

  /// sums (+)= [queries, keys]^T times the rows of queries, from the first query that attends to one of the
  /// keys
  void add_to_keys(const block_pair& blocks, const block_strip& keys, const float* weights,
                   const head_rows& queries, head_sums& sums) const {
    auto first = blocks.first_row_that_sees(keys.first);
    block_product({.rows = keys.count,
                   .columns = width_,
                   .inner = blocks.num_queries - first,
                   .left_stride = keys_per_block,
                   .right_stride = queries.stride(),
                   .stride = sums.stride(),
                   .left_is_transposed = true,
                   .accumulate = !blocks.is_first_to_see(keys.first)},
                  weights + first * keys_per_block + keys.first, queries.row(blocks.first_query + first),
                  sums.row(blocks.first_key + keys.first));
  }

  head_place place_;
  attention_options options_;
  std::int64_t width_;
  head_rows query_, key_, out_, dout_;
  transposed_rows keys_, values_;
  head_sums dquery_, dkey_, dvalue_;
  alignas(64) std::array<float, queries_per_block * keys_per_block> products_;
  alignas(64) std::array<float, queries_per_block * keys_per_block> gradients_;
  std::array<float, queries_per_block> delta_;
};

}  // namespace

void attention_backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
                        const attention_options& options, tensor& dqkv) {
  auto positions = out.shape()[1];
  if (out.num_elements() == 0) return;
  const auto* sums = log_sum_exp.values<float>().data();
  auto heads = out.shape()[0] * options.num_heads, width = out.shape()[2] / options.num_heads;
  parallel_for(heads, elements_of_heads(heads, positions, width, 5), [&](std::int64_t index) {
    backward_head(dout, qkv, out, options, dqkv, index).run(sums + index * positions);
  });
}

}  // namespace troupe::cpu
