#include "troupe/collective/ucx/last_words.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace troupe {
namespace {

/// So that it goes as one message at once.
constexpr std::size_t longest_cause = 4000;

void write_numbers(std::ostream& to, const std::vector<int>& numbers) {
  to << numbers.size() << ' ';
  for (int number : numbers) to << number << ' ';
}

std::vector<int> read_numbers(std::istream& from, std::size_t most) {
  std::size_t count = 0;
  from >> count;
  std::vector<int> numbers(std::min(count, most));
  for (auto& number : numbers) from >> number;
  from.ignore();
  return numbers;
}

std::string rest_of(std::istream& from) { return {std::istreambuf_iterator<char>(from), {}}; }

}  // namespace

std::string encode_last_words(const collective_error& why) {
  std::ostringstream text;
  text << static_cast<int>(why.kind()) << ' ' << why.sequence() << ' ';
  write_numbers(text, why.ranks());
  return text.str() + std::string(why.what()).substr(0, longest_cause);
}

collective_error decode_last_words(std::span<const std::byte> bytes, const group_description& group,
                                   int from) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  int kind = 0;
  std::uint64_t sequence = 0;
  text >> kind >> sequence;
  auto ranks = read_numbers(text, group.ranks.size());
  if (!text || kind < 0 || kind > static_cast<int>(collective_failure::transport))
    kind = static_cast<int>(collective_failure::transport);
  auto rank = group.ranks[static_cast<std::size_t>(from)];
  if (ranks.empty()) ranks.push_back(rank);
  return {static_cast<collective_failure>(kind), group.name, sequence, std::move(ranks),
          "group " + group.name + ": rank " + std::to_string(rank) + " gave up: " + rest_of(text)};
}

std::string encode_report(const member_report& report) {
  std::ostringstream text;
  write_numbers(text, report.awaited);
  return text.str() + report.doing;
}

member_report decode_report(const std::string& bytes) {
  std::istringstream text(bytes);
  member_report report;
  report.awaited = read_numbers(text, bytes.size());
  report.doing = rest_of(text);
  return report;
}

}  // namespace troupe
