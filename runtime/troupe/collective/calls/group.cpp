#include "troupe/collective/calls/group.hpp"

#include <array>
#include <cstdio>

#include "troupe/hash/fnv1a.hpp"

namespace troupe {
namespace {

constexpr std::size_t max_listed = 16;

std::string hash_text(const std::vector<world_rank>& ranks) {
  fnv1a hash;
  for (auto rank : ranks) hash.add(static_cast<std::uint64_t>(rank));
  std::array<char, 20> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

}  // namespace

std::string group_description::key() const {
  if (ranks.size() > max_listed) return name + '/' + std::to_string(ranks.size()) + '-' + hash_text(ranks);
  std::string text = name;
  for (auto rank : ranks) text += '/' + to_string(rank);
  return text;
}

}  // namespace troupe
