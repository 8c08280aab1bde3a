#pragma once
#include <algorithm>
#include <random>

#include "support/models/graph_models.hpp"
#include "troupe/nn/norm.hpp"

namespace troupe::testing {

inline int drawn_number(int below, std::mt19937& random) {
  return static_cast<int>(random() % static_cast<unsigned>(below));
}

/// Uses its input three times.
class Gated : public nn::module_of<Gated> {
 public:
  explicit Gated(std::int64_t features) : gate_(features, features) {}
  variable forward(const variable& x) override { return x + sigmoid(gate_(x)) * tanh(x); }
  void each_child(const child_visitor& visit) override { visit("gate", gate_); }

 private:
  nn::Linear gate_;
};

/// Its input itself, and a function of both inputs.
class Exchange : public nn::multi_module_of<Exchange> {
 public:
  explicit Exchange(std::int64_t features) : linear_(features, features) {}
  int num_inputs() const override { return 2; }
  int num_outputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    return {inputs[0], linear_(inputs[1]) + inputs[0]};
  }
  void each_child(const child_visitor& visit) override { visit("linear", linear_); }

 private:
  nn::Linear linear_;
};

/// One variable as both outputs.
class Twins : public nn::multi_module_of<Twins> {
 public:
  explicit Twins(std::int64_t features) : linear_(features, features) {}
  int num_inputs() const override { return 1; }
  int num_outputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    auto y = linear_(inputs[0]);
    return {y, y};
  }
  void each_child(const child_visitor& visit) override { visit("linear", linear_); }

 private:
  nn::Linear linear_;
};

/// A graph of some 6 to 20 nodes on samples [B, 6], with branches, skips, several outputs per module, values
/// of many uses, and modules that return their input.
class drawn_graph {
 public:
  drawn_graph(int num_classes, std::mt19937& random) : random_(random) {
    values_.push_back(model_.input());
    for (int left = 4 + drawn_number(8, random); left-- > 0;) add_nodes();
    auto unused = values_;
    std::erase_if(unused, [this](const nn::graph_value& each) { return is_used(each); });
    auto all = model_.add("all", nn::Add(), unused);
    model_.output(model_.add("head", nn::Linear(width, num_classes), all));
  }
  const nn::Graph& model() const { return model_; }

 private:
  static constexpr std::int64_t width = 6;

  bool is_used(const nn::graph_value& value) const {
    return std::ranges::any_of(used_, [&](const nn::graph_value& each) {
      return each.node == value.node && each.output == value.output;
    });
  }
  nn::graph_value draw() {
    // Late values more often.
    auto from = drawn_number(2, random_) == 0 ? 0 : std::max(0, static_cast<int>(values_.size()) - 3);
    auto drawn = from + drawn_number(static_cast<int>(values_.size()) - from, random_);
    auto chosen = values_[static_cast<std::size_t>(drawn)];
    used_.push_back(chosen);
    return chosen;
  }
  std::string name() { return "node" + std::to_string(count_++); }
  template <class Node>
  void add(Node node, const std::vector<nn::graph_value>& inputs) {
    values_.push_back(model_.add(name(), std::move(node), inputs));
  }

  void add_nodes() {
    switch (drawn_number(10, random_)) {
      case 0:
        return add(nn::ReLU(), {draw()});
      case 1:
        return add(nn::Add(), {draw(), draw(), draw()});
      case 2:
        return add(nn::Multiply(), {draw(), draw()});
      case 3:
        return add(Gated(width), {draw()});
      case 4:
        return add(nn::Dropout(drawn_number(2, random_) * 0.25), {draw()});
      case 5: {
        auto both = model_.add(name(), Exchange(width), draw(), draw());
        values_.push_back(both[0]);
        values_.push_back(both[1]);
        return;
      }
      case 6: {
        auto both = model_.add(name(), Twins(width), draw());
        values_.push_back(both[0]);
        values_.push_back(both[1]);
        return;
      }
      case 7: {
        auto parts = model_.add(name(), nn::Split({2, 4}), draw());
        add(nn::Linear(4, width), {parts[1]});
        return add(nn::Linear(2, width), {parts[0]});
      }
      case 8:
        return add(nn::Linear(2 * width, width), {model_.add(name(), nn::Concat(), draw(), draw())});
      default:
        return add(nn::Linear(width, width), {draw()});
    }
  }

  std::mt19937& random_;
  nn::Graph model_;
  std::vector<nn::graph_value> values_, used_;
  int count_ = 0;
};

}  // namespace troupe::testing
