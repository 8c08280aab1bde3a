#include "troupe/pipeline/partition.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The layers at which a stage may begin, and the end of the model.
std::vector<int> possible_cuts(const nn::Graph& model) {
  std::vector<int> cuts{0};
  auto seen_parameters = false;
  for (int layer = 0; layer < model.size(); ++layer) {
    if (model[layer]->num_parameters() == 0) continue;
    if (seen_parameters) cuts.push_back(layer);
    seen_parameters = true;
  }
  cuts.push_back(model.size());
  return cuts;
}

/// The cost of all layers before each of `cuts`.
std::vector<double> costs_before(const nn::Graph& model, const std::vector<int>& cuts) {
  std::vector<double> result;
  for (auto cut : cuts) {
    double sum = 0;
    for (int layer = 0; layer < cut; ++layer) sum += model[layer]->cost();
    result.push_back(sum);
  }
  return result;
}

void check_number(int stages, std::size_t num_pieces) {
  if (stages < 1)
    throw bad_input("cannot cut a model into " + std::to_string(stages) + " stages: use at least 1");
  if (static_cast<std::size_t>(stages) > num_pieces)
    throw bad_input("more stages than layers: " + std::to_string(stages) + " stages, but the model has " +
                    std::to_string(num_pieces) + " layers with parameters; use at most that many stages");
}

std::string names_of(const nn::Graph& model, const stage_range& range) {
  std::string names;
  for (int node = range.first; node < range.last; ++node)
    names += (names.empty() ? "" : ", ") + model.name_of(node);
  return names;
}

/// Tied weights too, which the layer lists only where it stands alone.
bool has_weights(const nn::Module& layer) {
  return layer.num_parameters() > 0 || layer.clone()->num_parameters() > 0;
}

void require_parameters(const nn::Graph& model, const stage_range& range) {
  for (int node = range.first; node < range.last; ++node)
    if (has_weights(*model[node])) return;
  throw bad_input("the stage of " + names_of(model, range) +
                  " would have no parameters to train. Let it begin earlier or end later");
}

}  // namespace

int most_stages(const nn::Graph& model) { return static_cast<int>(possible_cuts(model).size()) - 1; }

// Linear partition by dynamic programming. largest[s][c] is the minimal cost of the most expensive of s
// stages that end at cut c. It is the min, over all cuts b < c at which the last stage may begin, of
// max(largest[s - 1][b], cost of [b, c)). from[s][c] is the minimizing b; ties take the earliest.
std::vector<stage_range> partition_into_stages(const nn::Graph& model, int stages) {
  auto cuts = possible_cuts(model);
  check_number(stages, cuts.size() - 1);
  auto before = costs_before(model, cuts);
  auto count = static_cast<std::size_t>(stages);
  std::vector largest(count + 1, std::vector(cuts.size(), std::numeric_limits<double>::infinity()));
  std::vector from(count + 1, std::vector<std::size_t>(cuts.size()));
  largest[0][0] = 0;
  for (std::size_t s = 1; s <= count; ++s)
    for (std::size_t end = s; end < cuts.size(); ++end)
      for (std::size_t begin = s - 1; begin < end; ++begin) {
        auto candidate = std::max(largest[s - 1][begin], before[end] - before[begin]);
        if (candidate < largest[s][end]) {
          largest[s][end] = candidate;
          from[s][end] = begin;
        }
      }
  std::vector<stage_range> ranges(count);
  for (auto s = count, end = cuts.size() - 1; s > 0; end = from[s--][end])
    ranges[s - 1] = {cuts[from[s][end]], cuts[end]};
  return ranges;
}

std::vector<stage_range> partition_at(const nn::Graph& model, const std::vector<std::string>& first_nodes) {
  std::vector<stage_range> ranges{{0, model.size()}};
  for (const auto& name : first_nodes) {
    auto found = std::ranges::find(model.names(), name);
    if (found == model.names().end())
      throw bad_input("a stage is to begin with '" + name + "', which the model does not have. Choose of " +
                      names_of(model, {0, model.size()}));
    auto node = static_cast<int>(found - model.names().begin());
    if (node <= ranges.back().first)
      throw bad_input("a stage is to begin with '" + name + "', but the one before it begins with '" +
                      model.name_of(ranges.back().first) +
                      "'. Name nodes in the order in which the model has them, each once and without the "
                      "first");
    ranges.back().last = node;
    ranges.push_back({node, model.size()});
  }
  for (const auto& range : ranges) require_parameters(model, range);
  return ranges;
}

}  // namespace troupe
