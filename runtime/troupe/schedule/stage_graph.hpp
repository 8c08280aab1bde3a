#pragma once
#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace troupe::schedule {

/// A tensor that one stage's forward gives to another's: output port -> input port. Its gradient goes the
/// other way.
struct edge {
  int from = 0;    ///< the stage that computes the value
  int output = 0;  ///< its output port
  int to = 0;      ///< the stage that uses it, later than `from`
  int input = 0;   ///< its input port
  auto operator<=>(const edge&) const = default;
};

/// "1.0 -> 3.1": stage and port at both ends.
std::string to_string(const edge& shown);

/// Each stage gives one tensor to the next.
std::vector<edge> chain_edges(int num_stages);

/// The stages of a model and the edges between them, indexed by stage.
///
/// Stages are numbered so that every edge leads to a higher number. The input ports of a stage are 0, 1, ...,
/// and each has one edge. Its output ports are 0, 1, ..., and each has at least one: a tensor may go to
/// several stages, and its gradient is the sum of theirs. A stage without edges to it takes the samples, one
/// without edges from it computes the loss; there is one of the latter.
class stage_graph {
 public:
  /// Edges may come in any order. Throws bad_input naming the first edge or stage that breaks a rule above,
  /// and what to do.
  stage_graph(int num_stages, std::vector<edge> edges);

  int num_stages() const { return static_cast<int>(first_input_.size()) - 1; }
  /// [number of input ports], by port; holds as long as the graph. `stage`, here and below, is one of its
  /// own.
  std::span<const edge> inputs_of(int stage) const;
  /// By output port, then receiver, then its input port.
  std::span<const edge> outputs_of(int stage) const;
  int num_output_ports(int stage) const;
  bool takes_samples(int stage) const { return inputs_of(stage).empty(); }
  bool computes_loss(int stage) const { return outputs_of(stage).empty(); }
  /// The most edges on a way from `stage` to the one that computes the loss.
  int distance_to_loss(int stage) const { return distance_[static_cast<std::size_t>(stage)]; }
  /// Of all stages.
  int longest_distance_to_loss() const { return longest_distance_; }

 private:
  std::vector<edge> by_receiver_, by_sender_;
  std::vector<std::size_t> first_input_, first_output_;  // [num_stages + 1], in the lists above
  std::vector<int> distance_;                            // [num_stages]
  int longest_distance_ = 0;
};

}  // namespace troupe::schedule
