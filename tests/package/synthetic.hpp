#pragma once
#include <troupe/troupe.hpp>

namespace troupe::testing {

/// Points around 4 corners of a square, each corner a class: a model that learns gets nearly all right.
inline dataset_ptr four_corners(int num_samples) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  std::uint32_t state = 12345;
  auto noise = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(state >> 8) / static_cast<float>(1U << 24) - 0.5F;
  };
  for (int i = 0; i < num_samples; ++i) {
    auto corner = static_cast<std::uint8_t>(i % 4);
    points.push_back((corner & 1 ? 1.0F : -1.0F) + noise());
    points.push_back((corner & 2 ? 1.0F : -1.0F) + noise());
    labels.push_back(corner);
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {num_samples, 2}), tensor::from(labels, {num_samples})});
}

/// Two stages' worth of layers for them.
inline Pipeline small_pipeline() {
  nn::Sequential model(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 4));
  return Pipeline(model).stages(2).microbatches(4).optimizer(optim::Adam({.lr = 0.01}));
}

inline job_options small_options() {
  job_options options;
  options.batch = 32;
  options.epochs = 10;
  options.log_level = "off";  // tests look at what is thrown
  return options;
}

}  // namespace troupe::testing
