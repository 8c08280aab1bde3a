#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/map_elements.cuh"

namespace troupe::cuda {
namespace {

struct relu {
  __device__ float operator()(float x) const { return x <= 0 ? 0 : x; }
};
struct relu_gradient {
  __device__ float operator()(float dy, float y) const { return y <= 0 ? 0 : dy; }
};

constexpr float inverse_sqrt_two_pi = 0x1.988454p-2F;

struct gelu {
  __device__ float operator()(float x) const { return x * normcdff(x); }
};
struct gelu_gradient {
  __device__ float operator()(float dy, float x) const {
    auto density = inverse_sqrt_two_pi * expf(-0.5F * (x * x));
    return dy * (normcdff(x) + x * density);
  }
};

__device__ float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }

// (1 + tanh(u)) / 2 = sigmoid(2u), with 2u = x (slope + cubic x^2).
constexpr float slope = 0x1.988454p+0F, cubic = slope * 0.044715F;

struct gelu_tanh {
  __device__ float operator()(float x) const { return x * sigmoid_of(x * (slope + cubic * (x * x))); }
};
struct gelu_tanh_gradient {
  __device__ float operator()(float dy, float x) const {
    auto square = fminf(x * x, 400);  // where 1 - s or s is 0 already, before the product overflows
    auto s = sigmoid_of(x * (slope + cubic * square));
    return dy * (s + x * (s * (1 - s)) * (slope + 3 * cubic * square));
  }
};

struct silu {
  __device__ float operator()(float x) const { return x * sigmoid_of(x); }
};
struct silu_gradient {
  __device__ float operator()(float dy, float x) const {
    auto s = sigmoid_of(x);
    return dy * (s * (1 + x * (1 - s)));
  }
};

struct tanh_function {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct tanh_gradient {
  __device__ float operator()(float dy, float y) const { return dy * (1 - y * y); }
};

struct sigmoid {
  __device__ float operator()(float x) const { return sigmoid_of(x); }
};
struct sigmoid_gradient {
  __device__ float operator()(float dy, float y) const { return dy * (y * (1 - y)); }
};

template <class Function>
void forward(const tensor& x, tensor& y) {
  map_elements(Function(), y, x);
}

template <class Function>
void backward(const tensor& dy, const tensor& from, tensor& dx) {
  map_elements(Function(), dx, dy, from);
}

}  // namespace

activation_kernels activation() {
  return {.relu_forward = forward<relu>,
          .relu_backward = backward<relu_gradient>,
          .gelu_forward = forward<gelu>,
          .gelu_backward = backward<gelu_gradient>,
          .gelu_tanh_forward = forward<gelu_tanh>,
          .gelu_tanh_backward = backward<gelu_tanh_gradient>,
          .silu_forward = forward<silu>,
          .silu_backward = backward<silu_gradient>,
          .tanh_forward = forward<tanh_function>,
          .tanh_backward = backward<tanh_gradient>,
          .sigmoid_forward = forward<sigmoid>,
          .sigmoid_backward = backward<sigmoid_gradient>};
}

}  // namespace troupe::cuda
