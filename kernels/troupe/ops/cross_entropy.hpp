#pragma once
#include <cstdint>
#include <memory>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct cross_entropy_options {
  /// The part of each target that is spread evenly over all classes, in [0, 1): the target of class j is
  /// (1 - label_smoothing) [j == label] + label_smoothing / C.
  double label_smoothing = 0;
  /// Samples with this label have no loss and no gradient, and are not counted.
  std::int64_t ignore_index = -100;
};

/// The numbers of a loss that a GPU computes.
struct loss_totals {
  double loss_sum = 0;
  std::int64_t num_correct = 0, num_counted = 0;
};

/// The loss of one batch, as sums, which add up over batches.
struct cross_entropy_result {
  double loss_sum = 0;           ///< over counted samples, of -sum_j target_j log softmax(z)_j
  std::int64_t num_correct = 0;  ///< samples whose largest score, the first of equals, is their label's
  std::int64_t num_counted = 0;  ///< samples whose label is not ignore_index
  tensor log_sum_exp;            ///< f32, of labels' shape: log(sum_j exp(z_j)), what backward starts from
  tensor device_loss_sum;        ///< f32 []: loss_sum on the logits' device
  /// Of the first three, where they are deferred (deferred_reads), once they are read; else null.
  std::shared_ptr<const loss_totals> deferred = nullptr;
};

/// Softmax cross entropy. logits: f32, bf16 or f16 [..., C] with C >= 1; labels: i64, i32 or u8 of logits'
/// shape less the last axis, each in [0, C) or ignore_index. The arithmetic inside a row is f32, losses add
/// up in f64 in the rows' order. Throws std::invalid_argument for other arguments, naming the sample of a
/// label outside the range. On a GPU it waits for the sums, unless they are deferred (deferred_reads). Then
/// loss_sum is NaN and the counts are -1, as during a graph capture, which cannot wait; device_loss_sum is
/// valid, and NaN if a label is out of range.
cross_entropy_result cross_entropy_forward(const tensor& logits, const tensor& labels,
                                           const cross_entropy_options& options = {});

/// The gradient of scale * loss_sum: scale * (softmax(z) - target), of logits' shape and dtype. On a GPU,
/// where it does not wait, a label out of range makes its row NaN instead of throwing.
tensor cross_entropy_backward(const tensor& logits, const tensor& labels, const tensor& log_sum_exp,
                              double scale, const cross_entropy_options& options = {});

/// The labels, i64, i32 or u8 of any shape, that are not ignore_index: cross_entropy_result::num_counted
/// without the loss. Copies labels on a GPU to the CPU.
std::int64_t num_counted(const tensor& labels, const cross_entropy_options& options = {});

}  // namespace troupe
