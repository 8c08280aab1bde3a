#include "troupe/collective/ucx/member_card.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

std::string namespace_number(const std::string& path) {
  struct stat found {};
  check_posix(::stat(path.c_str(), &found), "look at " + path);
  return std::to_string(found.st_ino);
}

}  // namespace

std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) throw std::runtime_error("cannot read /proc/sys/kernel/random/boot_id: mount /proc");
  // Processes find each other by abstract sockets, which belong to the network namespace, and watch each
  // other by their numbers, which belong to the PID namespace.
  return boot + '/' + namespace_number("/proc/self/ns/net") + '/' + namespace_number("/proc/self/ns/pid") +
         '/' + std::to_string(::geteuid());
}

std::string to_string(const member_card& card) {
  return card.host + ' ' + std::to_string(card.process) + ' ' + card.address + ' ' + card.sizes;
}

std::vector<member_card> parse_cards(const std::vector<std::string>& texts) {
  std::vector<member_card> cards;
  for (const auto& text : texts) {
    member_card card;
    if (!(std::istringstream(text) >> card.host >> card.process >> card.address >> card.sizes))
      throw std::runtime_error("[member card] expected host, process, address and sizes, got \"" + text +
                               '"');
    cards.push_back(std::move(card));
  }
  return cards;
}

}  // namespace troupe
