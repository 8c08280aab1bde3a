#pragma once
#include "troupe/nn/activation.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/combine.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/graph.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/pooling.hpp"
#include "troupe/nn/reshape.hpp"

namespace troupe::testing {

/// Twice as high and wide: each pixel four times. x: [B, C, H, W].
class Upsample : public nn::module_of<Upsample> {
 public:
  variable forward(const variable& x) override {
    const auto& from = x.value.shape();
    auto apart = reshape(x, {from[0], from[1], from[2], 1, from[3], 1});
    auto repeated = broadcast_to(apart, {from[0], from[1], from[2], 2, from[3], 2});
    return reshape(repeated, {from[0], from[1], 2 * from[2], 2 * from[3]});
  }
};

/// Two blocks of convolution and norm with a sum around each; the second one has a convolution on its way
/// around. Samples: [B, 36].
inline nn::Graph residual_network(std::int64_t num_classes) {
  nn::Graph model;
  auto x = model.add("image", nn::Reshape({1, 6, 6}), model.input());
  x = model.add("stem", nn::Conv2d(1, 4, 3, {.padding = 1}), x);
  auto block = [&model](const std::string& name, const nn::graph_value& from, const nn::graph_value& around,
                        std::int64_t in, std::int64_t out) {
    auto y = model.add(name + ".conv1", nn::Conv2d(in, out, 3, {.padding = 1}), from);
    y = model.add(name + ".norm1", nn::BatchNorm2d(out), y);
    y = model.add(name + ".relu1", nn::ReLU(), y);
    y = model.add(name + ".conv2", nn::Conv2d(out, out, 3, {.padding = 1}), y);
    y = model.add(name + ".sum", nn::Add(), y, around);
    return model.add(name + ".relu2", nn::ReLU(), y);
  };
  x = block("block1", x, x, 4, 4);
  auto around = model.add("downsample", nn::Conv2d(4, 6, 1), x);
  x = block("block2", x, around, 4, 6);
  x = model.add("flat", nn::Flatten(), model.add("pool", nn::GlobalAvgPool2d(), x));
  model.output(model.add("head", nn::Linear(6, num_classes), x));
  return model;
}

/// A U-Net of two levels: what the way down computes is concatenated to the way up (Ronneberger et al. 2015).
/// Samples: [B, 64]; at the end a class for each image.
inline nn::Graph small_unet(std::int64_t num_classes) {
  nn::Graph model;
  auto conv = [&model](const std::string& name, std::int64_t in, std::int64_t out,
                       const nn::graph_value& from) {
    auto y = model.add(name, nn::Conv2d(in, out, 3, {.padding = 1}), from);
    return model.add(name + "_relu", nn::ReLU(), y);
  };
  auto x = model.add("image", nn::Reshape({1, 8, 8}), model.input());
  auto down1 = conv("down1", 1, 4, x);
  auto down2 = conv("down2", 4, 6, model.add("pool1", nn::MaxPool2d(2), down1));
  auto bottom = conv("bottom", 6, 8, model.add("pool2", nn::MaxPool2d(2), down2));
  auto up2 = model.add("join2", nn::Concat(), model.add("grow2", Upsample(), bottom), down2);
  up2 = conv("up2", 14, 6, up2);
  auto up1 = model.add("join1", nn::Concat(), model.add("grow1", Upsample(), up2), down1);
  up1 = conv("up1", 10, 4, up1);
  auto pooled = model.add("flat", nn::Flatten(), model.add("pool", nn::GlobalAvgPool2d(), up1));
  model.output(model.add("head", nn::Linear(4, num_classes), pooled));
  return model;
}

}  // namespace troupe::testing
