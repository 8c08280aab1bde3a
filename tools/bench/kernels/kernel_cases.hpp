#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::bench {

/// The sizes that kernels are measured at: those of a transformer's layer, and of a convolution's.
struct kernel_sizes {
  std::int64_t batch = 0, length = 0;  ///< tokens in a step: batch x length
  std::int64_t width = 0, heads = 0, vocabulary = 0;
  std::int64_t parameters = 0;        ///< elements that an optimizer steps
  std::vector<shape> scores, images;  ///< [rows, classes] and [N, C, H, W], one list of cases each
  std::int64_t tokens() const { return batch * length; }
};

/// GPT-2 124M with 16 sequences of 1024 tokens, and 64 images of 64 channels of 56 x 56.
kernel_sizes gpu_sizes();
/// What the CPU does in a few milliseconds.
kernel_sizes cpu_sizes();

/// One kernel and what it cannot do without: bytes to read and write once, or multiply-adds (2 each) of
/// matrix products. What is smaller by far, such as a row's statistics, is left out.
struct kernel_case {
  std::string name;
  dtype type = dtype::f32;
  shape extents;  ///< of x, or what comes nearest
  double bytes = 0, flops = 0;
  std::function<void()> run = nullptr;
};

using cases = std::vector<kernel_case>;

/// Every kernel family on the device, with `type` where mixed precision has it. The cases own their tensors;
/// those of one family are freed with its list, so make and measure one list at a time.
std::vector<std::function<cases()>> kernel_cases(const kernel_sizes& sizes, dtype type, device where);

/// Makes the tensors of the cases on one device.
struct case_builder {
  kernel_sizes sizes;
  dtype type;
  device where;

  tensor values(const shape& extents, dtype type, const char* name) const;
  tensor zeros(const shape& extents) const { return tensor::zeros(extents, dtype::f32, where); }
  /// [count], each below `below`.
  tensor indices(std::int64_t count, std::int64_t below) const;
};

/// A case whose kernel works on tensors of x's extents and dtype, and must move the bytes of `moved`.
kernel_case moving(std::string name, const tensor& x, std::initializer_list<tensor> moved,
                   std::function<void()> run);

// The families in element_cases.cpp: what goes element by element, reduces or copies.
cases activations(const case_builder& make);
cases elementwise(const case_builder& make);
cases casts(const case_builder& make);
cases reductions(const case_builder& make);
cases rearrangements(const case_builder& make);

}  // namespace troupe::bench
