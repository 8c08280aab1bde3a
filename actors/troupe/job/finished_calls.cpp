#include "troupe/job/finished_calls.hpp"

#include "troupe/wire/codec.hpp"
#include "troupe/wire/hex.hpp"

namespace troupe {

std::string finished_calls_text(std::vector<call_result> results) {
  for (auto& result : results) result.last_step.clear();
  return to_hex(encode(results));
}

std::vector<call_result> finished_calls_from_text(const std::string& text) {
  if (text.empty()) return {};
  auto bytes = from_hex(text);
  if (!bytes) throw decode_error("results of calls are hexadecimal digits, these are not");
  return decode<std::vector<call_result>>(*bytes);
}

}  // namespace troupe
