#include "kernel_cases.hpp"

#include "device_rates.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/dropout.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/embedding.hpp"
#include "troupe/ops/lamb_step.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/norm.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/sgd_step.hpp"
#include "troupe/ops/softmax.hpp"
#include "troupe/random/philox.hpp"

namespace troupe::bench {
namespace {

using cases = std::vector<kernel_case>;

/// Makes the tensors of one device.
struct maker {
  kernel_sizes sizes;
  dtype type;
  device where;

  tensor values(shape extents, dtype of, const char* name) const {
    return random_values(std::move(extents), of, where, name);
  }
  tensor zeros(shape extents) const { return tensor::zeros(std::move(extents), dtype::f32, where); }
  tensor indices(std::int64_t below) const {
    std::vector<std::int64_t> made;
    for (std::int64_t i = 0; i < sizes.tokens(); ++i)
      made.push_back(philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {1, 2})[0] % below);
    return tensor::from(made, {sizes.tokens()}).to(where);
  }
};

double bytes_of(std::initializer_list<tensor> all) {
  double sum = 0;
  for (const auto& each : all) sum += static_cast<double>(each.size_bytes());
  return sum;
}

cases norms(const maker& make) {
  auto rows = make.sizes.tokens(), width = make.sizes.width;
  auto x = make.values({rows, width}, dtype::f32, "x"), dy = make.values({rows, width}, dtype::f32, "dy");
  auto gamma = make.values({width}, dtype::f32, "gamma"), beta = make.values({width}, dtype::f32, "beta");
  auto dgamma = make.zeros({width}), dbeta = make.zeros({width});
  auto made = layer_norm_forward(x, gamma, beta, 1e-5);
  auto mean = made.mean, rstd = made.rstd;
  return {{"layer_norm", dtype::f32, bytes_of({x, x}), 0, [=] { layer_norm_forward(x, gamma, beta, 1e-5); }},
          {"layer_norm input gradient", dtype::f32, bytes_of({dy, x, x}), 0,
           [=] { layer_norm_backward_input(dy, x, gamma, mean, rstd); }},
          {"layer_norm weight gradient", dtype::f32, bytes_of({dy, x}), 0,
           [=] { layer_norm_backward_weight(dy, x, mean, rstd, dgamma, dbeta, gradient_mode::assign); }}};
}

cases activations(const maker& make) {
  auto x = make.values({make.sizes.tokens(), 4 * make.sizes.width}, make.type, "x");
  return {{"gelu", make.type, bytes_of({x, x}), 0, [=] { gelu_forward(x, gelu_kind::tanh); }},
          {"gelu gradient", make.type, bytes_of({x, x, x}), 0, [=] { gelu_backward(x, x, gelu_kind::tanh); }},
          {"dropout", make.type, bytes_of({x, x}), 0, [=] {
             dropout(x, 0.1, philox_stream(1, random_purpose::activations, {0, 0, 0}));
           }}};
}

cases elementwise(const maker& make) {
  shape extents{make.sizes.tokens(), make.sizes.width};
  auto a = make.values(extents, dtype::f32, "a"), b = make.values(extents, make.type, "b");
  cases all{{"add", dtype::f32, bytes_of({a, a, a}), 0, [=] { add(a, a); }}};
  if (make.type == dtype::f32) return all;
  all.push_back({"add to f32", make.type, bytes_of({a, b, a}), 0, [=] { add(a, b); }});
  all.push_back({"cast from f32", make.type, bytes_of({a, b}), 0, [=] { cast(a, b.type()); }});
  all.push_back({"cast to f32", make.type, bytes_of({a, b}), 0, [=] { cast(b, dtype::f32); }});
  return all;
}

cases losses(const maker& make) {
  auto classes = make.sizes.vocabulary;
  auto logits = make.values({make.sizes.tokens(), classes}, make.type, "logits");
  auto labels = make.indices(classes);
  auto sums = cross_entropy_forward(logits, labels).log_sum_exp;
  return {{"cross_entropy", make.type, bytes_of({logits}), 0, [=] { cross_entropy_forward(logits, labels); }},
          {"cross_entropy gradient", make.type, bytes_of({logits, logits}), 0,
           [=] { cross_entropy_backward(logits, labels, sums, 1e-3); }},
          {"softmax", make.type, bytes_of({logits, logits}), 0, [=] { softmax_forward(logits); }}};
}

cases embeddings(const maker& make) {
  auto table = make.zeros({make.sizes.vocabulary, make.sizes.width}), gradient = table.clone();
  auto indices = make.indices(make.sizes.vocabulary);
  auto dy = make.values({make.sizes.tokens(), make.sizes.width}, dtype::f32, "dy");
  return {{"embedding", dtype::f32, bytes_of({dy, dy}), 0, [=] { embedding_forward(table, indices); }},
          {"embedding weight gradient", dtype::f32, bytes_of({dy, gradient}), 0,
           [=] { embedding_backward_weight(indices, dy, gradient, gradient_mode::assign); }}};
}

cases attentions(const maker& make) {
  const auto& of = make.sizes;
  auto qkv = make.values({of.batch, of.length, 3 * of.width}, make.type, "qkv");
  auto dout = make.values({of.batch, of.length, of.width}, make.type, "dout");
  attention_options options{.num_heads = static_cast<int>(of.heads), .causal = true};
  auto made = attention_forward(qkv, options);
  auto out = made.out, sums = made.log_sum_exp;
  // Two products of a query with the half of the keys that it sees; the gradient has five, one of them the
  // forward's again.
  auto product = 2.0 * static_cast<double>(of.tokens() * of.width) * static_cast<double>(of.length) / 2;
  return {{"attention", make.type, 0, 2 * product, [=] { attention_forward(qkv, options); }},
          {"attention gradient", make.type, 0, 5 * product,
           [=] { attention_backward(dout, qkv, out, sums, options); }}};
}

cases linears(const maker& make) {
  auto rows = make.sizes.tokens(), in = make.sizes.width, out = 4 * in;
  auto x = make.values({rows, in}, make.type, "x"), dy = make.values({rows, out}, make.type, "dy");
  auto weight = make.values({out, in}, make.type, "weight"), bias = make.values({out}, make.type, "bias");
  auto dweight = make.zeros({out, in}), dbias = make.zeros({out});
  auto product = 2.0 * static_cast<double>(rows * in) * static_cast<double>(out);
  return {{"linear", make.type, 0, product, [=] { linear_forward(x, weight, bias); }},
          {"linear input gradient", make.type, 0, product, [=] { linear_backward_input(dy, weight); }},
          {"linear weight gradient", make.type, 0, product,
           [=] { linear_backward_weight(x, dy, dweight, dbias, gradient_mode::assign); }}};
}

cases optimizer_steps(const maker& make) {
  auto w = make.zeros({make.sizes.parameters}), g = w.clone(), m = w.clone(), v = w.clone();
  std::vector<adam_slot> slots{{w, g, m, v, {}}};
  std::vector<sgd_slot> with_momentum{{w, g, m, {}}};
  return {{"adam_step", dtype::f32, bytes_of({w, w, g, m, m, v, v}), 0,
           [=] { adam_step(slots, 1, {.weight_decay = 0.1, .decoupled = true}); }},
          {"lamb_step", dtype::f32, bytes_of({w, w, g, m, m, v, v}), 0, [=] { lamb_step(slots, 1, {}); }},
          {"sgd_step", dtype::f32, bytes_of({w, w, g, m, m}), 0,
           [=] { sgd_step(with_momentum, {.momentum = 0.9}); }},
          {"global_norm", dtype::f32, bytes_of({g}), 0, [=] { global_norm(std::span(&g, 1)); }}};
}

cases images(const maker& make) {
  auto channels = make.sizes.channels;
  shape extents{make.sizes.images, channels, 56, 56};
  auto x = make.values(extents, make.type, "x"),
       weight = make.values({channels, channels, 3, 3}, make.type, "weight");
  auto dweight = make.zeros({channels, channels, 3, 3});
  conv2d_options options{.padding = {1, 1}};
  auto product = 2.0 * static_cast<double>(x.num_elements()) * static_cast<double>(9 * channels);
  auto quarter = bytes_of({x}) / 4;
  return {{"conv2d", make.type, 0, product, [=] { conv2d_forward(x, weight, {}, options); }},
          {"conv2d input gradient", make.type, 0, product,
           [=] { conv2d_backward_input(x, weight, extents, options); }},
          {"conv2d weight gradient", make.type, 0, product,
           [=] { conv2d_backward_weight(x, x, dweight, {}, options, gradient_mode::assign); }},
          {"batch_norm", make.type, bytes_of({x, x}), 0, [=] { batch_norm_forward(x, {}, {}, {}, {}); }},
          {"max_pool2d", make.type, bytes_of({x}) + quarter, 0, [=] { max_pool2d_forward(x); }},
          {"avg_pool2d", make.type, bytes_of({x}) + quarter, 0, [=] { avg_pool2d_forward(x); }}};
}

}  // namespace

kernel_sizes gpu_sizes() {
  return {.batch = 16,
          .length = 1024,
          .width = 768,
          .heads = 12,
          .vocabulary = 50304,
          .parameters = 124'475'904,
          .images = 64,
          .channels = 64};
}

kernel_sizes cpu_sizes() {
  return {.batch = 8,
          .length = 128,
          .width = 256,
          .heads = 4,
          .vocabulary = 4096,
          .parameters = 1 << 22,
          .images = 4,
          .channels = 32};
}

std::vector<std::function<std::vector<kernel_case>()>> kernel_cases(const kernel_sizes& sizes, dtype type,
                                                                    device where) {
  std::vector<std::function<cases()>> all;
  for (auto* family :
       {linears, attentions, norms, activations, elementwise, losses, embeddings, optimizer_steps, images})
    all.push_back([family, make = maker{sizes, type, where}] { return family(make); });
  return all;
}

}  // namespace troupe::bench
