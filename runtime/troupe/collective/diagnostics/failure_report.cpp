#include "troupe/collective/diagnostics/failure_report.hpp"

#include <algorithm>
#include <sstream>

namespace troupe::collective {

namespace {

constexpr std::size_t max_cause_bytes = 4000;
constexpr int no_failure = -1;

std::string call_text(std::uint64_t sequence, const call_signature& signature) {
  return "call " + std::to_string(sequence) + ", " + to_string(signature);
}

template <class Number>
std::string line_of(const std::vector<Number>& numbers) {
  std::string line;
  for (auto number : numbers) line += std::to_string(static_cast<int>(number)) + ' ';
  return line;
}

template <class Number>
std::vector<Number> numbers_in(std::istream& text) {
  std::string line;
  std::getline(text, line);
  std::istringstream from(line);
  std::vector<Number> numbers;
  for (int number; from >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

std::string text_in_call(std::uint64_t sequence, const call_signature& signature) {
  return "is in " + call_text(sequence, signature);
}

std::string text_after_call(std::uint64_t sequence, const call_signature& signature) {
  if (sequence == 0) return failure_report().activity;
  return "has finished " + call_text(sequence, signature) + ", and begun no other collective since";
}

failure_report with_failure(failure_report report, const collective_error& why) {
  report.failure = why.kind();
  report.failed_ranks = why.ranks();
  report.cause = why.what();
  return report;
}

// Lines: sequence, failure, waits_for, failed_ranks, activity; then the cause, which may have several lines.
std::string encode(const failure_report& report) {
  return std::to_string(report.sequence) + '\n' +
         std::to_string(report.failure ? static_cast<int>(*report.failure) : no_failure) + '\n' +
         line_of(report.waits_for) + '\n' + line_of(report.failed_ranks) + '\n' + report.activity + '\n' +
         report.cause.substr(0, max_cause_bytes);
}

failure_report decode_failure_report(std::span<const std::byte> bytes) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  failure_report report;
  int failure = no_failure;
  text >> report.sequence >> failure;
  if (failure != no_failure)
    report.failure = static_cast<collective_failure>(
        std::clamp(failure, 0, static_cast<int>(collective_failure::transport)));
  std::string rest_of_line;
  std::getline(text, rest_of_line);
  report.waits_for = numbers_in<member_index>(text);
  report.failed_ranks = numbers_in<world_rank>(text);
  std::getline(text, report.activity);
  std::getline(text, report.cause, '\0');
  return report;
}

std::string failure_report_store::key(member_index member) const {
  return "failure_report/" + group_.key() + "/of/" + std::to_string(member);
}

void failure_report_store::put(const failure_report& report) {
  auto text = encode(report);
  keys_.put(key(group_.member), std::as_bytes(std::span(text)));
}

member_reports failure_report_store::read_all() {
  auto deadline = std::chrono::steady_clock::now() + grace_;
  member_reports all;
  for (int i = 0; i < group_.size(); ++i) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto bytes = keys_.get(key(i), std::max(left, std::chrono::milliseconds(1)));
    all.push_back(bytes ? std::optional(decode_failure_report(*bytes)) : std::nullopt);
  }
  return all;
}

}  // namespace troupe::collective
