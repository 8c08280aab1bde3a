#include "troupe/usage/nearest.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace troupe::usage {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      auto above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (from[i] == to[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

namespace {

using name_of_others = std::pair<std::string_view, std::string_view>;

/// What scripts for PyTorch, Lightning, Transformers and nanoGPT call an option of a job.
constexpr std::array<name_of_others, 35> names_of_others{{{"lr", "learning_rate"},
                                                          {"batch_size", "batch"},
                                                          {"bs", "batch"},
                                                          {"train_batch_size", "batch"},
                                                          {"num_epochs", "epochs"},
                                                          {"max_epochs", "epochs"},
                                                          {"num_train_epochs", "epochs"},
                                                          {"max_steps", "steps"},
                                                          {"num_steps", "steps"},
                                                          {"max_iters", "steps"},
                                                          {"gradient_accumulation_steps", "microbatches"},
                                                          {"accumulate_grad_batches", "microbatches"},
                                                          {"max_grad_norm", "clip_grad_norm"},
                                                          {"grad_clip", "clip_grad_norm"},
                                                          {"gradient_clip_val", "clip_grad_norm"},
                                                          {"output_dir", "snapshot_dir"},
                                                          {"out_dir", "snapshot_dir"},
                                                          {"save_dir", "snapshot_dir"},
                                                          {"checkpoint_dir", "snapshot_dir"},
                                                          {"save_steps", "disk_every"},
                                                          {"save_every", "disk_every"},
                                                          {"resume_from_checkpoint", "resume"},
                                                          {"dtype", "precision"},
                                                          {"amp", "precision"},
                                                          {"data_dir", "data"},
                                                          {"dataset", "data"},
                                                          {"num_threads", "threads"},
                                                          {"random_seed", "seed"},
                                                          {"pipeline_parallel_size", "stages"},
                                                          {"data_parallel_size", "replicas"},
                                                          {"num_gpus", "devices"},
                                                          {"gpus", "devices"},
                                                          {"gpu", "device"},
                                                          {"accelerator", "device"},
                                                          {"use_cuda", "device"}}};

/// "learning_rate" of "--learning-rate"
std::string plain(std::string_view name) {
  std::string text(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace

std::string nearest_to(std::string_view word, const std::vector<std::string>& known) {
  auto distance = [word](const std::string& one) { return edit_distance(word, one); };
  auto nearest = std::ranges::min_element(known, {}, distance);
  if (nearest == known.end() || distance(*nearest) > std::max<std::size_t>(2, word.size() / 3)) return {};
  return *nearest;
}

std::string meant_by(std::string_view word, const std::vector<std::string>& known) {
  auto other = std::ranges::find(names_of_others, plain(word), &name_of_others::first);
  if (other != names_of_others.end()) {
    auto ours = std::ranges::find(known, other->second, plain);
    if (ours != known.end()) return *ours;
  }
  return nearest_to(word, known);
}

}  // namespace troupe::usage
