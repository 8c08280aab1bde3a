#include "troupe/collective/ucx/member_card.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace troupe {

std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) throw std::runtime_error("cannot read /proc/sys/kernel/random/boot_id: mount /proc");
  return boot + '/' + std::to_string(::geteuid());
}

std::string to_string(const member_card& card) {
  return card.host + ' ' + std::to_string(card.process) + ' ' + card.address;
}

std::vector<member_card> parse_cards(const std::vector<std::string>& texts) {
  std::vector<member_card> cards;
  for (const auto& text : texts) {
    member_card card;
    if (!(std::istringstream(text) >> card.host >> card.process >> card.address))
      throw std::runtime_error("[member card] expected host, process and address, got \"" + text + '"');
    cards.push_back(std::move(card));
  }
  return cards;
}

}  // namespace troupe
