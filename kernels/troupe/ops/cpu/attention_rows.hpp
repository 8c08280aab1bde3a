#pragma once
#include <cstdint>

namespace troupe::cpu {

/// What a row's softmax has seen so far.
struct running_softmax {
  float largest = -__builtin_inff();
  float sum = 0;  ///< of e^(score - largest)
};

/// Makes each of `size` products e^(scale * product - largest so far), 0 beyond the first `num_seen`. Returns
/// by what sums of former blocks must be multiplied. scale > 0.
float continue_softmax(float* row, std::int64_t num_seen, std::int64_t size, float scale,
                       running_softmax& softmax);

void scale_row(float* row, float factor, std::int64_t size);

/// largest + log(sum)
float log_sum_exp_of(const running_softmax& softmax);

/// a . b, in 16 sums that a fixed tree combines
float dot(const float* a, const float* b, std::int64_t size);

/// Of one row of products q . k and one of gradients dout . v makes the probabilities and the gradients of
/// the products, 0 beyond the first `num_seen`. `delta` is dout . out.
void softmax_gradient(float* products, float* gradients, std::int64_t num_seen, std::int64_t size,
                      float scale, float log_sum_exp, float delta);

}  // namespace troupe::cpu
