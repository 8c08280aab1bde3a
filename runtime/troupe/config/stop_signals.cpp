#include "troupe/config/stop_signals.hpp"

#include <signal.h>

#include <array>
#include <csignal>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::config {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 3> early_warnings{
    {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"XCPU", SIGXCPU}}};

int signal_of(std::string_view word, std::string_view option) {
  auto name = word.starts_with("SIG") ? word.substr(3) : word;
  for (const auto& [known, number] : early_warnings)
    if (name == known) return number;
  throw bad_input(std::string(option) + ": expected USR1, USR2 or XCPU, several with commas, got '" +
                  std::string(word) + "'. SIGTERM, SIGINT and SIGHUP stop a job always");
}

void mask_stop_signals(int how, const stop_signals& more) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, number);
  for (int number : more) ::sigaddset(&set, number);
  ::pthread_sigmask(how, &set, nullptr);
}

}  // namespace

stop_signals stop_signals_from(std::string_view text, std::string_view option) {
  stop_signals signals;
  while (!text.empty()) {
    auto comma = text.find(',');
    signals.insert(signal_of(text.substr(0, comma), option));
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return signals;
}

std::string to_text(const stop_signals& signals) {
  std::string text;
  for (const auto& [name, number] : early_warnings)
    if (signals.contains(number)) text += (text.empty() ? "" : ",") + std::string(name);
  return text;
}

bool is_early_warning(int signal) {
  for (const auto& [name, number] : early_warnings)
    if (number == signal) return true;
  return false;
}

bool is_repeated_stop(int signal, std::chrono::milliseconds since_first) {
  return !is_early_warning(signal) && since_first >= std::chrono::seconds(1);
}

void unblock_stop_signals(const stop_signals& more) { mask_stop_signals(SIG_UNBLOCK, more); }

void block_stop_signals(const stop_signals& more) { mask_stop_signals(SIG_BLOCK, more); }

}  // namespace troupe::config
