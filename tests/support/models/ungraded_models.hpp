#pragma once
#include <string>
#include <vector>

#include "support/random_tensor.hpp"
#include "troupe/data/dataset.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/combine.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/graph.hpp"
#include "troupe/nn/linear.hpp"

namespace troupe::testing {

// Graphs in which values that get no gradient, or none from one of their uses, go from stage to stage.

/// f32 [B, T, 1], 1 where there is a token: a constant.
class TokenMask : public nn::module_of<TokenMask> {
 public:
  variable forward(const variable& tokens) override {
    auto from = tokens.value.values<std::int64_t>();
    auto mask = tensor::zeros({tokens.value.shape()[0], tokens.value.shape()[1], 1});
    for (std::size_t i = 0; i < from.size(); ++i) mask.values<float>()[i] = from[i] == 0 ? 0 : 1;
    return {mask};
  }
};

/// The same as bool.
class BoolMask : public nn::module_of<BoolMask> {
 public:
  variable forward(const variable& tokens) override { return {cast(TokenMask().forward(tokens).value)}; }

 private:
  static tensor cast(const tensor& from) {
    auto result = tensor::zeros(from.shape(), dtype::boolean);
    for (std::size_t i = 0; i < from.values<float>().size(); ++i)
      result.bytes()[i] = std::byte{from.values<float>()[i] != 0};
    return result;
  }
};

class Detach : public nn::module_of<Detach> {
 public:
  variable forward(const variable& x) override { return detach(x); }
};

/// x * mask, of any dtype. x: [B, T, C], mask: [B, T, 1]
class Masked : public nn::multi_module_of<Masked> {
 public:
  int num_inputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    auto mask = inputs[1].value;
    if (mask.dtype() == dtype::boolean) {
      auto floats = tensor::zeros(mask.shape());
      for (std::size_t i = 0; i < floats.values<float>().size(); ++i)
        floats.values<float>()[i] = static_cast<float>(mask.bytes()[i]);
      mask = floats;
    }
    return {multiply(inputs[0], {mask})};
  }
};

/// x + detach(y), or where the first element of y is negative x + y.
class AddValue : public nn::multi_module_of<AddValue> {
 public:
  explicit AddValue(bool learns_sometimes = false) : learns_sometimes_(learns_sometimes) {}
  int num_inputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    auto learns = learns_sometimes_ && inputs[1].value.values<float>()[0] < 0;
    return {add(inputs[0], learns ? inputs[1] : detach(inputs[1]))};
  }

 private:
  bool learns_sometimes_;
};

/// x + the embedded tokens. x: [B, T, 8]
class AddTokens : public nn::multi_module_of<AddTokens> {
 public:
  int num_inputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    return {add(inputs[0], table_(inputs[1]))};
  }
  void each_child(const child_visitor& visit) override { visit("table", table_); }

 private:
  nn::Embedding table_{12, 8};
};

class MeanOfTokens : public nn::module_of<MeanOfTokens> {
 public:
  variable forward(const variable& x) override { return mean(x, {.axes = {1}}); }
};

inline const std::vector<std::string>& ungraded_variants() {
  static const std::vector<std::string> names{
      "tokens",    "mask",           "bool_mask",        "sent_detached",    "received_detached",
      "both_uses", "detached_twice", "learns_sometimes", "nothing_behind_it"};
  return names;
}

/// Samples: tokens [B, 6] of 12; 3 classes. Stages may begin with "second", "third" and "fourth".
inline nn::Graph ungraded_model(const std::string& variant) {
  nn::Graph model;
  auto tokens = model.input();
  auto embedded = model.add("embedded", nn::Embedding(12, 8), tokens);
  auto mask = tokens;
  if (variant == "mask") mask = model.add("mask", TokenMask(), tokens);
  if (variant == "bool_mask") mask = model.add("mask", BoolMask(), tokens);
  auto first = model.add("first", nn::Linear(8, 8), embedded);
  auto detached = variant == "sent_detached" ? model.add("detached", Detach(), first) : first;
  auto from = variant == "nothing_behind_it" ? model.add("detached", Detach(), first) : first;
  auto x = model.add("tanh", nn::Tanh(), model.add("second", nn::Linear(8, 8), from));
  if (variant == "mask") x = model.add("masked2", Masked(), x, mask);
  x = model.add("third", nn::Linear(8, 8), x);
  if (variant == "mask" || variant == "bool_mask") x = model.add("masked3", Masked(), x, mask);
  if (variant == "sent_detached") x = model.add("sum3", nn::Add(), x, detached);
  if (variant == "received_detached" || variant == "both_uses" || variant == "detached_twice")
    x = model.add("sum3", AddValue(), x, first);
  if (variant == "detached_twice") x = model.add("again3", AddValue(), x, first);
  if (variant == "learns_sometimes") x = model.add("sum3", AddValue(true), x, first);
  x = model.add("fourth", nn::Linear(8, 8), x);
  if (variant == "tokens") x = model.add("tokens4", AddTokens(), x, tokens);
  if (variant == "both_uses") x = model.add("sum4", nn::Add(), x, first);
  if (variant == "detached_twice") x = model.add("sum4", AddValue(), x, first);
  model.output(model.add("head", nn::Linear(8, 3), model.add("mean", MeanOfTokens(), x)));
  return model;
}

inline dataset_ptr token_rows(std::int64_t count = 250) {
  std::vector<std::int64_t> tokens, classes;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t at = 0; at < 6; ++at) tokens.push_back((row * 7 + at * at * 5 + row * at) % 12);
    classes.push_back((tokens.back() + tokens[tokens.size() - 3]) % 3);
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(tokens, {count, 6}), tensor::from(classes, {count})});
}

}  // namespace troupe::testing
