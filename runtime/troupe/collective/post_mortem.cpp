#include "troupe/collective/post_mortem.hpp"

#include <algorithm>
#include <sstream>

namespace troupe {
namespace {

// Lines: sequence | failure or -1 | ranks | doing; then the cause, which may have lines of its own.
std::string encoded(const last_words& words) {
  std::ostringstream text;
  text << words.sequence << '\n' << (words.gave_up ? static_cast<int>(*words.gave_up) : -1) << '\n';
  for (int rank : words.ranks) text << rank << ' ';
  text << '\n' << words.doing << '\n' << words.cause;
  return text.str();
}

last_words decoded(const std::vector<std::byte>& bytes) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  last_words words;
  int failure = -1;
  std::string line;
  text >> words.sequence >> failure;
  if (failure >= 0) words.gave_up = static_cast<collective_failure>(failure);
  std::getline(text, line);
  std::getline(text, line);
  std::istringstream ranks(line);
  for (int rank; ranks >> rank;) words.ranks.push_back(rank);
  std::getline(text, words.doing);
  std::getline(text, words.cause, '\0');
  return words;
}

}  // namespace

std::string post_mortem::key(int member) const {
  std::string name = group_.name + "/last_words";
  for (int rank : group_.ranks) name += '/' + std::to_string(rank);
  return name + "/of/" + std::to_string(member);
}

void post_mortem::leave(const last_words& words) {
  auto text = encoded(words);
  place_.put(key(group_.member), std::as_bytes(std::span(text)));
}

std::vector<std::optional<last_words>> post_mortem::read() {
  auto deadline = std::chrono::steady_clock::now() + grace_;
  std::vector<std::optional<last_words>> all;
  for (int i = 0; i < group_.size(); ++i) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto bytes = place_.get(key(i), std::max(left, std::chrono::milliseconds(1)));
    all.push_back(bytes ? std::optional(decoded(*bytes)) : std::nullopt);
  }
  return all;
}

}  // namespace troupe
