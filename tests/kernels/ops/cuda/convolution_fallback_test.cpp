#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/fake_cuda_libraries/fake_cudnn.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace troupe;
using namespace troupe::testing;

namespace {

/// Sets what the fake library answers, for the length of a test.
class answered {
 public:
  explicit answered(cudnnStatus_t status) {
    the_fake_cudnn().workspace_status = [status](const auto&) { return status; };
  }
  ~answered() { the_fake_cudnn().workspace_status = {}; }
  answered(const answered&) = delete;
  answered& operator=(const answered&) = delete;
};

/// The three passes of one convolution, on a GPU and on the CPU. Each test takes images of its own width, so
/// that it meets no plan of another.
struct convolution_layer {
  std::int64_t width;
  dtype type = dtype::bf16;
  conv2d_options options{.stride{2, 1}, .padding{1, 0}, .dilation{1, 2}, .groups = 3};
  tensor x = random_tensor({2, 3, 6, width}, "x", type), weight = random_tensor({6, 1, 3, 2}, "weight", type),
         dy = random_tensor({2, 6, 3, width - 2}, "dy", type), bias = random_tensor({6}, "bias", type);

  struct results {
    tensor y, dx, dweight, dbias;
  };
  results on(device target) const {
    auto dweight = tensor::full(weight.shape(), 1).to(target), dbias = tensor::full({6}, 1).to(target);
    results found{conv2d_forward(x.to(target), weight.to(target), bias.to(target), options),
                  conv2d_backward_input(dy.to(target), weight.to(target), x.shape(), options), dweight,
                  dbias};
    conv2d_backward_weight(x.to(target), dy.to(target), dweight, dbias, options, gradient_mode::accumulate);
    return found;
  }
};

void require_alike(const tensor& found, const tensor& expected) {
  std::vector<exact_sum> sums;
  for (auto value : values_of(expected)) sums.push_back({value, std::abs(value) + 1});
  require_close(found, sums);
}

void require_alike(const convolution_layer::results& found, const convolution_layer::results& expected) {
  require_alike(found.y, expected.y);
  require_alike(found.dx, expected.dx);
  require_alike(found.dweight, expected.dweight);
  require_alike(found.dbias, expected.dbias);
}

constexpr std::string_view pass_calls[] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                           "cudnnConvolutionBackwardFilter"};

int num_passes() {
  int count = 0;
  for (auto function : pass_calls) count += the_fake_cudnn().num_calls(function);
  return count;
}

}  // namespace

TEST_CASE("convolutions that cuDNN supports are computed by cuDNN") {
  convolution_layer conv{7};
  auto before = num_passes();
  require_alike(conv.on(first_gpu()), conv.on({}));
  CHECK(num_passes() == before + 3);
}

TEST_CASE("convolutions that cuDNN does not support are computed by kernels of the project") {
  answered not_supported(CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  auto before = num_passes();
  for (auto type : floating_types) {
    convolution_layer conv{8, type};
    require_alike(conv.on(first_gpu()), conv.on({}));
  }
  CHECK(num_passes() == before);
}

TEST_CASE(
    "convolutions that cuDNN refuses at the call are computed by the project's kernels, then and later") {
  convolution_layer conv{9};
  for (auto function : pass_calls) the_fake_cudnn().fail_call(function, CUDNN_STATUS_NOT_SUPPORTED);
  auto first = conv.on(first_gpu());
  require_alike(first, conv.on({}));
  auto before = num_passes();
  auto again = conv.on(first_gpu());
  CHECK(num_passes() == before);
  CHECK(same_bits(first.y, again.y));
  CHECK(same_bits(first.dx, again.dx));
  CHECK(same_bits(first.dweight, again.dweight));
}

TEST_CASE("without cuDNN the project's kernels compute convolutions, and the numeric class names them") {
  auto& fake = the_fake_cudnn();
  fake.is_there = false;
  convolution_layer conv{10};
  auto before = num_passes();
  auto name = numeric_class(first_gpu());
  auto found = conv.on(first_gpu());
  fake.is_there = true;
  require_alike(found, conv.on({}));
  CHECK(num_passes() == before);
  CHECK_THAT(name, ContainsSubstring("+cudnn-none+"));
  CHECK(numeric_class(first_gpu()) != name);
}

TEST_CASE("an incomplete installation of cuDNN is an error, not a fallback") {
  answered broken(CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE);
  convolution_layer conv{11};
  CHECK_THROWS_AS(conv.on(first_gpu()), cuda_error);
}

TEST_CASE("a failing call of cuDNN names the convolution, leaks nothing, and is tried again") {
  convolution_layer conv{12};
  auto& fake = the_fake_cudnn();
  for (std::string_view function :
       {"cudnnCreateTensorDescriptor", "cudnnSetTensor4dDescriptor", "cudnnCreateFilterDescriptor",
        "cudnnSetFilter4dDescriptor", "cudnnCreateConvolutionDescriptor", "cudnnSetConvolution2dDescriptor",
        "cudnnSetConvolutionGroupCount", "cudnnSetConvolutionMathType",
        "cudnnGetConvolutionForwardWorkspaceSize"}) {
    CAPTURE(function);
    auto live = fake.num_live();
    fake.fail_call(function, CUDNN_STATUS_INTERNAL_ERROR);
    CHECK_THROWS_MATCHES(
        conv.on(first_gpu()), cuda_error,
        MessageMatches(
            ContainsSubstring("cuDNN: ") &&
            ContainsSubstring("in conv2d of bf16 x [2, 3, 6, 12] and weight [6, 1, 3, 2], stride 2 x 1, "
                              "padding 1 x 0, dilation 1 x 2, groups 3")));
    CHECK(fake.num_live() == live);
  }
  require_alike(conv.on(first_gpu()), conv.on({}));
}

TEST_CASE("a convolution of more elements than cuDNN counts is not given to cuDNN") {
  // No memory is touched: a grid has not so many blocks, and so the launch refuses.
  auto gpu = first_gpu();
  auto memory = tensor::zeros({64}, dtype::f32, gpu);
  auto side = std::int64_t{1} << 20;
  conv2d_problem problem{side, 1, 1, {side, 1}, {side, 1}, {1, 1}, {}};
  auto images = [&] {
    return tensor::wrap(nullptr, memory.bytes().data(), {side, 1, side, 1}, dtype::f32, gpu);
  };
  auto y = images();
  auto asked = the_fake_cudnn().num_calls("cudnnCreateTensorDescriptor");
  CHECK_THROWS_WITH(
      kernels_on(gpu).conv2d.forward(problem, images(), memory.rows(0, 1).reshape({1, 1, 1, 1}), {}, y),
      ContainsSubstring("2^31 - 1 blocks"));
  CHECK(the_fake_cudnn().num_calls("cudnnCreateTensorDescriptor") == asked);
}

TEST_CASE("a recorded convolution can be replayed after its plan is destroyed") {
  convolution_layer conv{13};
  auto gpu = first_gpu();
  auto x = conv.x.to(gpu), weight = conv.weight.to(gpu), bias = conv.bias.to(gpu);
  auto expected = conv2d_forward(x, weight, bias, conv.options);
  auto y = tensor::zeros(expected.shape(), dtype::bf16, gpu);
  captured_step step(gpu, [&] { y.copy_from(conv2d_forward(x, weight, bias, conv.options)); });
  step.run();
  step.run();
  auto one = tensor::zeros({1, 1, 1, 1}, dtype::bf16, gpu);
  for (std::int64_t width = 100; width < 360; ++width)  // more than the plans that are kept
    conv2d_forward(tensor::zeros({1, 1, 1, width}, dtype::bf16, gpu), one, {});
  CHECK(the_fake_cudnn().num_live() < 4 * 260);
  y.copy_from(tensor::zeros(expected.shape(), dtype::bf16, gpu));
  step.run();
  CHECK(same_bits(y, expected));
}
