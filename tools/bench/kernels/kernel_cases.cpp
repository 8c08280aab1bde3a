#include "bench/kernels/kernel_cases.hpp"

#include "bench/compute/device_rates.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/embedding.hpp"
#include "troupe/ops/lamb_step.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/mse_loss.hpp"
#include "troupe/ops/norm.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/sgd_step.hpp"
#include "troupe/ops/softmax.hpp"
#include "troupe/ops/top_k.hpp"
#include "troupe/random/philox.hpp"

namespace troupe::bench {

tensor case_builder::values(const shape& extents, dtype type, const char* name) const {
  return random_values(extents, type, where, name);
}

tensor case_builder::indices(std::int64_t count, std::int64_t below) const {
  std::vector<std::int64_t> made;
  for (std::int64_t i = 0; i < count; ++i)
    made.push_back(philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {1, 2})[0] % below);
  return tensor::from(made, {count}).to(where);
}

kernel_case moving(std::string name, const tensor& x, std::initializer_list<tensor> moved,
                   std::function<void()> run) {
  double bytes = 0;
  for (const auto& each : moved) bytes += static_cast<double>(each.size_bytes());
  return {std::move(name), x.dtype(), x.shape(), bytes, 0, std::move(run)};
}

namespace {

kernel_case multiplying(std::string name, const tensor& x, double flops, std::function<void()> run) {
  return {std::move(name), x.dtype(), x.shape(), 0, flops, std::move(run)};
}

cases norms(const case_builder& make) {
  auto rows = make.sizes.tokens(), width = make.sizes.width;
  auto x = make.values({rows, width}, dtype::f32, "x"), dy = make.values({rows, width}, dtype::f32, "dy");
  auto gamma = make.values({width}, dtype::f32, "gamma"), beta = make.values({width}, dtype::f32, "beta");
  auto dgamma = make.zeros({width}), dbeta = make.zeros({width});
  auto made = layer_norm_forward(x, gamma, beta, 1e-5);
  auto mean = made.mean, rstd = made.rstd;
  constexpr auto mode = gradient_mode::assign;
  return {
      moving("layer_norm", x, {x, x}, [=] { layer_norm_forward(x, gamma, beta, 1e-5); }),
      moving("layer_norm input gradient", x, {dy, x, x},
             [=] { layer_norm_backward_input(dy, x, gamma, mean, rstd); }),
      moving("layer_norm weight gradient", x, {dy, x},
             [=] { layer_norm_backward_weight(dy, x, mean, rstd, dgamma, dbeta, mode); }),
      moving("rms_norm", x, {x, x}, [=] { rms_norm_forward(x, gamma, 1e-5); }),
      moving("rms_norm input gradient", x, {dy, x, x}, [=] { rms_norm_backward_input(dy, x, gamma, rstd); }),
      moving("rms_norm weight gradient", x, {dy, x},
             [=] { rms_norm_backward_weight(dy, x, rstd, dgamma, mode); })};
}

cases scores_of(const case_builder& make, const shape& extents) {
  auto x = make.values(extents, make.type, "x");
  auto labels = make.indices(extents[0], extents[1]);
  auto sums = cross_entropy_forward(x, labels).log_sum_exp;
  auto y = softmax_forward(x), log_y = log_softmax_forward(x);
  return {moving("softmax", x, {x, x}, [=] { softmax_forward(x); }),
          moving("softmax gradient", x, {x, x, x}, [=] { softmax_backward(x, y); }),
          moving("log_softmax", x, {x, x}, [=] { log_softmax_forward(x); }),
          moving("log_softmax gradient", x, {x, x, x}, [=] { log_softmax_backward(x, log_y); }),
          moving("cross_entropy", x, {x}, [=] { cross_entropy_forward(x, labels); }),
          moving("cross_entropy gradient", x, {x, x}, [=] { cross_entropy_backward(x, labels, sums, 1e-3); }),
          moving("top_k", x, {x}, [=] { top_k(x, 8); })};
}

cases squared_errors(const case_builder& make) {
  auto x = make.values({make.sizes.tokens(), make.sizes.width}, make.type, "x"), y = x.clone();
  return {moving("mse_loss", x, {x, x}, [=] { mse_loss_forward(x, y); }),
          moving("mse_loss gradient", x, {x, x, x}, [=] { mse_loss_backward(x, y, 1e-3); })};
}

cases embeddings(const case_builder& make) {
  auto table = make.zeros({make.sizes.vocabulary, make.sizes.width}), gradient = table.clone();
  auto indices = make.indices(make.sizes.tokens(), make.sizes.vocabulary);
  auto dy = make.values({make.sizes.tokens(), make.sizes.width}, dtype::f32, "dy");
  return {moving("embedding", dy, {dy, dy}, [=] { embedding_forward(table, indices); }),
          moving("embedding weight gradient", dy, {dy, gradient},
                 [=] { embedding_backward_weight(indices, dy, gradient, gradient_mode::assign); })};
}

cases attentions(const case_builder& make) {
  const auto& of = make.sizes;
  auto qkv = make.values({of.batch, of.length, 3 * of.width}, make.type, "qkv");
  auto dout = make.values({of.batch, of.length, of.width}, make.type, "dout");
  attention_options options{.num_heads = static_cast<int>(of.heads), .causal = true};
  auto made = attention_forward(qkv, options);
  auto out = made.out, sums = made.log_sum_exp;
  // Two products of a query with the half of the keys that it sees; the gradient has five, one of them the
  // forward's again.
  auto product = 2.0 * static_cast<double>(of.tokens() * of.width) * static_cast<double>(of.length) / 2;
  return {multiplying("attention", dout, 2 * product, [=] { attention_forward(qkv, options); }),
          multiplying("attention gradient", dout, 5 * product,
                      [=] { attention_backward(dout, qkv, out, sums, options); })};
}

cases linears(const case_builder& make) {
  auto rows = make.sizes.tokens(), in = make.sizes.width, out = 4 * in;
  auto x = make.values({rows, in}, make.type, "x"), dy = make.values({rows, out}, make.type, "dy");
  auto weight = make.values({out, in}, make.type, "weight"), bias = make.values({out}, make.type, "bias");
  auto dweight = make.zeros({out, in}), dbias = make.zeros({out});
  auto product = 2.0 * static_cast<double>(rows * in) * static_cast<double>(out);
  return {multiplying("linear", x, product, [=] { linear_forward(x, weight, bias); }),
          multiplying("linear input gradient", x, product, [=] { linear_backward_input(dy, weight); }),
          multiplying("linear weight gradient", x, product,
                      [=] { linear_backward_weight(x, dy, dweight, dbias, gradient_mode::assign); }),
          moving("bias gradient", dy, {dy}, [=] { linear_backward_bias(dy, dbias, gradient_mode::assign); })};
}

cases optimizer_steps(const case_builder& make) {
  auto w = make.zeros({make.sizes.parameters}), g = w.clone(), m = w.clone(), v = w.clone();
  std::vector<adam_slot> slots{{w, g, m, v, {}}};
  std::vector<sgd_slot> with_momentum{{w, g, m, {}}}, plain{{w, g}};
  return {moving("adam_step", w, {w, w, g, m, m, v, v},
                 [=] { adam_step(slots, 1, {.weight_decay = 0.1, .decoupled = true}); }),
          moving("lamb_step", w, {w, w, g, m, m, v, v}, [=] { lamb_step(slots, 1, {}); }),
          moving("sgd_step", w, {w, w, g, m, m}, [=] { sgd_step(with_momentum, {.momentum = 0.9}); }),
          moving("sgd_step plain", w, {w, w, g}, [=] { sgd_step(plain, {}); }),
          moving("scale_all", w, {g, g}, [=] { scale_all(std::span(&g, 1), 0.999); }),
          moving("global_norm", w, {g}, [=] { global_norm(std::span(&g, 1)); })};
}

cases convolutions_of(const case_builder& make, const shape& extents) {
  auto channels = extents[1];
  auto x = make.values(extents, make.type, "x"),
       weight = make.values({channels, channels, 3, 3}, make.type, "weight");
  auto dweight = make.zeros({channels, channels, 3, 3});
  conv2d_options options{.padding = {1, 1}};
  auto product = 2.0 * static_cast<double>(x.num_elements()) * static_cast<double>(9 * channels);
  return {multiplying("conv2d", x, product, [=] { conv2d_forward(x, weight, {}, options); }),
          multiplying("conv2d input gradient", x, product,
                      [=] { conv2d_backward_input(x, weight, extents, options); }),
          multiplying("conv2d weight gradient", x, product,
                      [=] { conv2d_backward_weight(x, x, dweight, {}, options, gradient_mode::assign); })};
}

cases batch_norms_of(const case_builder& make, const shape& extents) {
  auto x = make.values(extents, make.type, "x"), dy = make.values(extents, make.type, "dy");
  auto weight = make.values({extents[1]}, dtype::f32, "weight"), bias = weight.clone();
  auto mean = make.zeros({extents[1]}), variance = exp(weight);
  auto dweight = make.zeros({extents[1]}), dbias = dweight.clone();
  auto made = batch_norm_forward(x, weight, bias, mean, variance);
  auto center = made.mean, rstd = made.rstd;
  return {moving("batch_norm", x, {x, x}, [=] { batch_norm_forward(x, weight, bias, mean, variance); }),
          moving("batch_norm inference", x, {x, x},
                 [=] { batch_norm_inference(x, weight, bias, mean, variance); }),
          moving("batch_norm input gradient", x, {x, x, x},
                 [=] { batch_norm_backward_input(dy, x, weight, center, rstd); }),
          moving("batch_norm weight gradient", x, {x, x}, [=] {
            batch_norm_backward_weight(x, dy, center, rstd, dweight, dbias, gradient_mode::assign);
          })};
}

cases poolings_of(const case_builder& make, const shape& extents) {
  auto x = make.values(extents, make.type, "x");
  auto found = max_pool2d_forward(x);
  auto y = found.y, indices = found.indices;
  return {moving("max_pool2d", x, {x, y}, [=] { max_pool2d_forward(x); }),
          moving("max_pool2d gradient", x, {x, y}, [=] { max_pool2d_backward(y, indices, extents); }),
          moving("avg_pool2d", x, {x, y}, [=] { avg_pool2d_forward(x); }),
          moving("avg_pool2d gradient", x, {x, y}, [=] { avg_pool2d_backward(y, extents); }),
          moving("global_avg_pool", x, {x}, [=] { global_avg_pool_forward(x); })};
}

}  // namespace

kernel_sizes gpu_sizes() {
  return {.batch = 16,
          .length = 1024,
          .width = 768,
          .heads = 12,
          .vocabulary = 50304,
          .parameters = 124'475'904,
          .scores = {{16 * 1024, 50304}},
          .images = {{64, 64, 56, 56}}};
}

kernel_sizes cpu_sizes() {
  return {.batch = 8,
          .length = 128,
          .width = 256,
          .heads = 4,
          .vocabulary = 4096,
          .parameters = 1 << 22,
          .scores = {{256, 10}, {1024, 256}, {8192, 1000}, {1024, 50257}},
          .images = {{4, 32, 56, 56}, {32, 16, 14, 14}, {256, 32, 28, 28}, {32, 256, 7, 7}}};
}

std::vector<std::function<cases()>> kernel_cases(const kernel_sizes& sizes, dtype type, device where) {
  std::vector<std::function<cases()>> all;
  case_builder make{sizes, type, where};
  for (auto* family : {linears, attentions, norms, activations, elementwise, casts, reductions,
                       rearrangements, squared_errors, embeddings, optimizer_steps})
    all.push_back([family, make] { return family(make); });
  for (const auto& extents : sizes.scores)
    all.push_back([extents, make] { return scores_of(make, extents); });
  for (auto* family : {convolutions_of, batch_norms_of, poolings_of})
    for (const auto& extents : sizes.images)
      all.push_back([family, extents, make] { return family(make, extents); });
  return all;
}

}  // namespace troupe::bench
