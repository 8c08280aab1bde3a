#include "troupe/data_parallel/detail/same_models.hpp"

#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::detail {
namespace {

constexpr call_options by_waiter{.progress = progress_by::waiter};

/// A line for each module. `path` has no trailing dot; that of the whole model is empty.
void describe_modes(nn::Module& module, const std::string& path, std::string& into) {
  into += '\n' + (path.empty() ? "the model" : "the module " + path) +
          (module.is_training() ? " in training mode" : " in evaluation mode");
  module.each_child([&](const std::string& name, nn::Module& child) {
    if (name.empty() || path.empty())
      describe_modes(child, path + name, into);
    else
      describe_modes(child, path + "." + name, into);
  });
}

/// Without devices: each member has a GPU of its own.
std::string described(nn::Module& model, const std::string& options) {
  std::string text = options;
  for (const auto& each : model.named_parameters()) {
    const auto& value = each.target->value();
    text += '\n' + each.name + ' ' + std::string(to_string(value.dtype())) + to_string(value.shape()) +
            (each.target->requires_gradient ? "" : ", frozen");
  }
  text += "\nno more parameters";
  describe_modes(model, "", text);
  return text;
}

/// Gathers every member's text.
std::vector<std::string> texts_of_all(const std::string& own, communicator& group) {
  auto num_members = static_cast<std::size_t>(group.size());
  auto gather = [&](const tensor& part, const std::vector<std::int64_t>& parts, std::int64_t total) {
    auto all = tensor::zeros({total}, part.dtype(), group.device());
    group.all_gather(part.to(group.device()), all, parts, by_waiter).wait();
    return all.to(device{});
  };
  auto size = tensor::from<std::int64_t>(std::vector{static_cast<std::int64_t>(own.size())}, {1});
  auto sizes = gather(size, std::vector<std::int64_t>(num_members, 1), group.size());
  std::vector<std::int64_t> parts(sizes.values<std::int64_t>().begin(), sizes.values<std::int64_t>().end());
  std::int64_t total = 0;
  for (auto part : parts) total += part;
  auto part = tensor::empty({parts[static_cast<std::size_t>(group.rank())]}, dtype::u8);
  std::memcpy(part.bytes().data(), own.data(), own.size());
  auto all = gather(part, parts, total);
  std::vector<std::string> texts(num_members);
  const auto* at = reinterpret_cast<const char*>(all.bytes().data());
  for (std::size_t i = 0; i < num_members; at += parts[i++])
    texts[i].assign(at, static_cast<std::size_t>(parts[i]));
  return texts;
}

/// The first line in which the texts differ; "no more modules" for a missing line.
std::pair<std::string, std::string> first_difference(const std::string& expected, const std::string& got) {
  std::istringstream left(expected), right(got);
  while (true) {
    std::string a, b;
    bool has_left = static_cast<bool>(std::getline(left, a)),
         has_right = static_cast<bool>(std::getline(right, b));
    if (a != b || has_left != has_right || !has_left)
      return {has_left ? a : "no more modules", has_right ? b : "no more modules"};
  }
}

}  // namespace

void require_same_models(nn::Module& model, const std::string& options, communicator& group) {
  auto texts = texts_of_all(described(model, options), group);
  const auto& ranks = group.group().ranks;
  for (std::size_t i = 1; i < texts.size(); ++i) {
    if (texts[i] == texts[0]) continue;
    auto [expected, got] = first_difference(texts[0], texts[i]);
    throw std::invalid_argument("[DataParallel] expected the same model and options on all ranks: rank " +
                                to_string(ranks[0]) + " has " + expected + ", rank " + to_string(ranks[i]) +
                                " has " + got);
  }
}

}  // namespace troupe::detail
