#include "troupe/agreement/job_description.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "troupe/hash/fnv1a.hpp"

namespace troupe::agreement {
namespace {

/// More than these say no more about the cause.
constexpr std::size_t most_differences = 4;

std::string text_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text + (ranks.size() == 1 ? " has " : " have ");
}

using ranks_by_value = std::vector<std::pair<std::string, std::vector<int>>>;

/// Who has which value, the most frequent last.
std::string text_of(const std::string& name, ranks_by_value groups) {
  // Stable, from the highest rank on: of equally many the lowest rank's comes last.
  std::ranges::reverse(groups);
  std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.second.size(); });
  std::string text;
  for (const auto& [value, ranks] : groups)
    text += (text.empty() ? name + ": " : ", ") + text_of(ranks) + value;
  return text;
}

const described_field* find(const job_description& description, const std::string& name) {
  auto found = std::ranges::find(description.fields(), name, &described_field::name);
  return found == description.fields().end() ? nullptr : &*found;
}

/// Who has which value of a field, the group of the lowest rank first.
ranks_by_value values_of(const std::string& name, const std::map<int, job_description>& by_rank) {
  ranks_by_value groups;
  for (const auto& [rank, description] : by_rank) {
    const auto* field = find(description, name);
    if (field && field->value.empty()) continue;
    auto value = field ? field->value : "none";
    auto group = std::ranges::find(groups, value, &ranks_by_value::value_type::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
    group->second.push_back(rank);
  }
  return groups;
}

/// All names, in the order in which they come first.
std::vector<std::string> names_in(const std::map<int, job_description>& by_rank) {
  std::vector<std::string> names;
  std::map<std::string_view, bool> known;
  for (const auto& [rank, description] : by_rank)
    for (const auto& field : description.fields())
      if (known.emplace(field.name, true).second) names.push_back(field.name);
  return names;
}

/// Of descriptions whose fields agree one by one: whether they stand in the same order.
std::optional<std::string> order_difference(const std::map<int, job_description>& by_rank) {
  const auto& [reference_rank, reference] = *by_rank.begin();
  for (const auto& [rank, description] : by_rank) {
    auto [ours, theirs] = std::ranges::mismatch(reference.fields(), description.fields(), {},
                                                &described_field::name, &described_field::name);
    if (ours == reference.fields().end() || theirs == description.fields().end()) continue;
    return text_of("order", {{ours->name + " first", {reference_rank}}, {theirs->name + " first", {rank}}});
  }
  return {};
}

}  // namespace

void job_description::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

std::uint64_t job_description::hash() const {
  if (fields_.empty()) return 0;
  fnv1a hash;
  // A zero after each text, so that no two lists of texts are alike.
  for (const auto& [name, value] : fields_) hash.add(name).add(0).add(value).add(0);
  return hash.value() == 0 ? 1 : hash.value();
}

std::optional<std::string> description_difference(const std::map<int, job_description>& by_rank) {
  if (by_rank.empty()) return {};
  std::string text;
  std::size_t count = 0;
  for (const auto& name : names_in(by_rank)) {
    auto groups = values_of(name, by_rank);
    if (groups.size() < 2 || ++count > most_differences) continue;
    text += (text.empty() ? "" : "; ") + text_of(name, std::move(groups));
  }
  if (count > most_differences) text += "; and " + std::to_string(count - most_differences) + " more";
  if (count > 0) return text;
  return order_difference(by_rank);
}

std::string short_hash(std::span<const std::byte> bytes) {
  fnv1a hash;
  for (auto byte : bytes) hash.add(std::to_integer<std::uint64_t>(byte));
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

}  // namespace troupe::agreement
