#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/group.hpp"

namespace troupe {

/// Why a member gives up, for the others.
std::string encode_last_words(const collective_error& why);
/// As they are told by member `from`. What cannot be read becomes an error too.
collective_error decode_last_words(std::span<const std::byte> text, const group_description& group, int from);

/// What a member does, and which members it waits for.
struct member_report {
  std::vector<int> awaited;
  std::string doing;
};
std::string encode_report(const member_report& report);
member_report decode_report(const std::string& text);

}  // namespace troupe
