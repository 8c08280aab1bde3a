#include "troupe/collective/last_words.hpp"

#include <algorithm>
#include <sstream>

namespace troupe {
namespace {

constexpr std::size_t longest_cause = 4000;
constexpr int still_going = -1;

std::string call_text(std::uint64_t sequence, const call_signature& signature) {
  return "call " + std::to_string(sequence) + ", " + to_string(signature);
}

std::string line_of(const std::vector<int>& numbers) {
  std::string line;
  for (int number : numbers) line += std::to_string(number) + ' ';
  return line;
}

std::vector<int> numbers_in(std::istream& text) {
  std::string line;
  std::getline(text, line);
  std::istringstream from(line);
  std::vector<int> numbers;
  for (int number; from >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

std::string doing_in(std::uint64_t sequence, const call_signature& signature) {
  return "is in " + call_text(sequence, signature);
}

std::string doing_after(std::uint64_t sequence, const call_signature& signature) {
  if (sequence == 0) return last_words().doing;
  return "has finished " + call_text(sequence, signature) + ", and begun no other collective since";
}

last_words giving_up(last_words words, const collective_error& why) {
  words.gave_up = why.kind();
  words.ranks = why.ranks();
  words.cause = why.what();
  return words;
}

// Lines: sequence | failure | awaited | ranks | doing; then the cause, which may have lines of its own.
std::string encoded(const last_words& words) {
  return std::to_string(words.sequence) + '\n' +
         std::to_string(words.gave_up ? static_cast<int>(*words.gave_up) : still_going) + '\n' +
         line_of(words.awaited) + '\n' + line_of(words.ranks) + '\n' + words.doing + '\n' +
         words.cause.substr(0, longest_cause);
}

last_words decoded_words(std::span<const std::byte> bytes) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  last_words words;
  int failure = still_going;
  text >> words.sequence >> failure;
  if (failure != still_going)
    words.gave_up = static_cast<collective_failure>(
        std::clamp(failure, 0, static_cast<int>(collective_failure::transport)));
  std::string rest_of_line;
  std::getline(text, rest_of_line);
  words.awaited = numbers_in(text);
  words.ranks = numbers_in(text);
  std::getline(text, words.doing);
  std::getline(text, words.cause, '\0');
  return words;
}

}  // namespace troupe
