#include "troupe/collective/ucx/member_card.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "troupe/error/errors.hpp"

namespace troupe {

std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) throw std::runtime_error("cannot read /proc/sys/kernel/random/boot_id: mount /proc");
  // Processes find each other by abstract sockets, which belong to the network namespace.
  struct stat network {};
  check_posix(::stat("/proc/self/ns/net", &network), "look at /proc/self/ns/net");
  return boot + '/' + std::to_string(network.st_ino) + '/' + std::to_string(::geteuid());
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
