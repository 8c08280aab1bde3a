#include "troupe/pipeline/detail/stage_content.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/data_parallel/sync_batch_norm.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"

using namespace troupe;
using enum layout::replica_content;

TEST_CASE("replicas hold a stage alike, unless a module in it has buffers") {
  nn::Sequential layers(nn::Linear(2, 16), nn::Dropout(0.1), nn::BatchNorm2d(4), nn::Linear(16, 2));
  nn::Graph model(layers);
  CHECK(detail::contents_of(model, {{0, 2}, {2, 3}, {3, 4}}, {}) == std::vector{equal, own, equal});
  CHECK(detail::content_of(model, {0, 4}, {}) == own);
  CHECK(detail::content_of(nn::Graph(nn::Sequential(layers)), {0, 1}, {.precision = dtype::f16}) == equal);
}

TEST_CASE("a module within another counts with its buffers, and a GPT has none") {
  nn::Graph nested(nn::Sequential(nn::Sequential(nn::Linear(2, 4), nn::BatchNorm2d(4)), nn::Linear(4, 2)));
  CHECK(detail::content_of(nested, {0, 1}, {}) == own);
  nn::Graph gpt(nn::gpt_layers({.context = 8, .features = 8, .num_layers = 2, .num_heads = 2}));
  CHECK(detail::content_of(gpt, {0, gpt.size()}, {}) == equal);
}

TEST_CASE("what replicas hold back of their gradients, and weights between averages, are each one's own") {
  nn::Graph model(nn::Sequential(nn::Linear(2, 16)));
  CHECK(detail::content_of(model, {0, 1}, {.exchange = {.top_k_gradients = 0.5}}) == own);
  CHECK(detail::content_of(model, {0, 1}, {.exchange = {.power_sgd_rank = 2}}) == own);
  CHECK(detail::content_of(model, {0, 1}, {.exchange = {.average_every = 4}}) == own);
  CHECK(detail::content_of(model, {0, 1}, {.exchange = {.gradient_sync = dtype::bf16}}) == equal);
}

TEST_CASE("replicas hold the statistics of all alike, and run such a stage together") {
  nn::Sequential inner(nn::Linear(2, 4), nn::SyncBatchNorm(4));
  nn::Graph model(nn::Sequential(inner, nn::SyncBatchNorm(4), nn::BatchNorm2d(4), nn::Linear(4, 2)));
  CHECK(detail::contents_of(model, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {}) ==
        std::vector{equal, equal, own, equal});
  CHECK(detail::content_of(model, {1, 3}, {}) == own);
  CHECK(detail::synchronized_stages_of(model, {{0, 1}, {1, 3}, {3, 4}}) == std::vector{0, 1});
  CHECK(detail::synchronized_stages_of(model, {{0, 4}}) == std::vector{0});
  CHECK(detail::synchronized_stages_of(nn::Graph(nn::Sequential(nn::BatchNorm2d(4))), {{0, 1}}).empty());
}

TEST_CASE("replicas are equal unless they average weights or have buffers of their own") {
  nn::Graph plain(nn::Sequential(nn::Linear(4, 4), nn::SyncBatchNorm(4))),
      normed(nn::Sequential(nn::Linear(4, 4), nn::BatchNorm2d(4)));
  numeric_options numerics;
  numerics.exchange.top_k_gradients = 0.1;  // residuals take no part in an evaluation
  CHECK(detail::has_equal_replicas(plain, numerics));
  CHECK_FALSE(detail::has_equal_replicas(normed, numerics));
  numerics.exchange = {.average_every = 2};
  CHECK_FALSE(detail::has_equal_replicas(plain, numerics));
}
