#include <functional>
#include <utility>

#include "support/cuda_emulation/runtime/stream_work.hpp"
#include "troupe/ops/cuda/bias.hpp"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/row_sum.hpp"
#include "troupe/ops/gpu_class.hpp"
#include "troupe/tensor/cuda/gpu.hpp"

// In place of cuBLASLt and cuDNN: the CPU's products and convolutions, queued in the GPU's stream as theirs
// are. The rest of an emulated GPU's table is the CUDA kernels themselves.

namespace troupe {
namespace {

/// The same elements as a tensor in the CPU's memory, which the CPU's kernels take.
tensor on_cpu(const tensor& of) {
  if (!of.defined()) return {};
  return tensor::wrap(nullptr, const_cast<std::byte*>(of.bytes().data()), of.extents(), of.type());
}

/// Queues `work` in the stream of the GPU `where`.
void enqueue_on(device where, std::function<void()> work) {
  gpu_scope scope(where.index);
  emulation::enqueue(stream_of(where), std::move(work));
}

void matrix_product(const matrix_product_shape& of, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  enqueue_on(c.where(), [of, a = on_cpu(a), b = on_cpu(b), bias = on_cpu(bias), c = on_cpu(c)]() mutable {
    cpu_kernels().products.matrix_product(of, a, b, bias, c);
  });
}

batch_norm_problem pixels_of(const conv2d_problem& of) {
  return {of.batch, of.out_channels, of.out.h * of.out.w};
}

// As with cuDNN, the bias and the ReLU are kernels of the project.
void conv2d_forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias,
                    tensor& y) {
  auto product = of;
  product.options.relu = false;
  enqueue_on(y.where(), [product, x = on_cpu(x), weight = on_cpu(weight), y = on_cpu(y)]() mutable {
    cpu_kernels().conv2d.forward(product, x, weight, {}, y);
  });
  cuda::add_channel_bias(pixels_of(of), bias, of.options.relu, y);
}

void conv2d_backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight, tensor& dx) {
  enqueue_on(dx.where(), [of, dy = on_cpu(dy), weight = on_cpu(weight), dx = on_cpu(dx)]() mutable {
    cpu_kernels().conv2d.backward_input(of, dy, weight, dx);
  });
}

void conv2d_backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                            tensor& dbias, gradient_mode mode) {
  enqueue_on(dweight.where(),
             [of, mode, x = on_cpu(x), dy = on_cpu(dy), dweight = on_cpu(dweight)]() mutable {
               tensor no_bias;
               cpu_kernels().conv2d.backward_weight(of, x, dy, dweight, no_bias, mode);
             });
  if (dbias.defined()) cuda::sum_channels(pixels_of(of), dy, dbias, mode);
}

}  // namespace

namespace cuda {

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

conv2d_kernels conv2d() {
  return {.forward = conv2d_forward,
          .backward_input = conv2d_backward_input,
          .backward_weight = conv2d_backward_weight};
}

}  // namespace cuda

std::string gpu_class(device) { return "emulated"; }

}  // namespace troupe
