#include "troupe/collective/gloo/gloo_store.hpp"

#include <algorithm>

#include "troupe/collective/collective_error.hpp"

namespace troupe {

gloo_store::gloo_store(const group_description& group, store& place, std::chrono::milliseconds timeout)
    : group_(group),
      place_(place),
      deadline_(std::chrono::steady_clock::now() + timeout),
      prefix_(group.name + "/gloo") {
  for (int rank : group.ranks) prefix_ += '/' + std::to_string(rank);
  prefix_ += "/of/";
}

std::optional<std::vector<std::byte>> gloo_store::find(const std::string& key) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
  return place_.get(full(key), std::max(left, std::chrono::milliseconds(1)));
}

void gloo_store::set(const std::string& key, const std::vector<char>& data) {
  place_.put(full(key), std::as_bytes(std::span(data)));
}

std::vector<char> gloo_store::get(const std::string& key) {
  wait({key});
  auto bytes = find(key).value();
  const auto* first = reinterpret_cast<const char*>(bytes.data());
  return {first, first + bytes.size()};
}

void gloo_store::wait(const std::vector<std::string>& keys) {
  std::vector<int> missing;
  std::string names;
  for (const auto& key : keys) {
    if (find(key)) continue;
    missing.push_back(group_.ranks[static_cast<std::size_t>(std::stoi(key))]);
    names += ' ' + std::to_string(missing.back());
  }
  if (missing.empty()) return;
  throw collective_error(collective_failure::timed_out, group_.name, 0, missing,
                         "group " + group_.name + " cannot begin over gloo: nothing came from rank" + names);
}

}  // namespace troupe
