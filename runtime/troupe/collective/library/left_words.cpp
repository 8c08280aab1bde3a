#include "troupe/collective/library/left_words.hpp"

#include <algorithm>

namespace troupe {

std::string left_words::key(int member) const {
  std::string name = group_.name + "/last_words";
  for (int rank : group_.ranks) name += '/' + std::to_string(rank);
  return name + "/of/" + std::to_string(member);
}

void left_words::leave(const last_words& words) {
  auto text = encoded(words);
  place_.put(key(group_.member), std::as_bytes(std::span(text)));
}

members_words left_words::read() {
  auto deadline = std::chrono::steady_clock::now() + grace_;
  members_words all;
  for (int i = 0; i < group_.size(); ++i) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto bytes = place_.get(key(i), std::max(left, std::chrono::milliseconds(1)));
    all.push_back(bytes ? std::optional(decoded_words(*bytes)) : std::nullopt);
  }
  return all;
}

}  // namespace troupe
