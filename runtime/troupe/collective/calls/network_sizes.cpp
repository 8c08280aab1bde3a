#include "troupe/collective/calls/network_sizes.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "troupe/error/errors.hpp"

namespace troupe::collective {

namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 30;
/// The overhead of smaller messages exceeds their content.
constexpr std::size_t min_block = 1024;
constexpr std::size_t max_blocks_ahead = 1024;

struct field {
  std::string_view name;
  std::size_t min, max;
  std::size_t (*get)(const network_sizes& from);
  void (*set)(network_sizes& to, std::size_t value);
};

constexpr std::array fields{
    field{"whole_inputs", 0, max_bytes, [](const network_sizes& from) { return from.whole_inputs; },
          [](network_sizes& to, std::size_t value) { to.whole_inputs = value; }},
    field{"whole_broadcast", 0, max_bytes, [](const network_sizes& from) { return from.whole_broadcast; },
          [](network_sizes& to, std::size_t value) { to.whole_broadcast = value; }},
    field{"block", min_block, max_bytes, [](const network_sizes& from) { return from.block; },
          [](network_sizes& to, std::size_t value) { to.block = value; }},
    field{"blocks_ahead", 1, max_blocks_ahead,
          [](const network_sizes& from) { return static_cast<std::size_t>(from.blocks_ahead); },
          [](network_sizes& to, std::size_t value) { to.blocks_ahead = static_cast<int>(value); }}};

[[noreturn]] void refuse(const std::string& expected, std::string_view text) {
  throw bad_input("--network-sizes: expected " + expected + ", got '" + std::string(text) + "'");
}

const field& field_named(std::string_view name) {
  const auto* found = std::ranges::find(fields, name, &field::name);
  if (found != fields.end()) return *found;
  std::string known;
  for (const auto& each : fields) known += (known.empty() ? "" : ", ") + std::string(each.name);
  refuse("NAME=SIZE of " + known + ", such as whole_inputs=64K,block=1M", name);
}

/// "64", "64K", "1M"
std::size_t size_from(const field& setting, std::string_view text) {
  std::size_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : -1;
  bool fits =
      status == std::errc() && shift >= 0 && value <= (setting.max >> shift) && value << shift >= setting.min;
  if (fits) return value << shift;
  refuse(std::string(setting.name) + " from " + std::to_string(setting.min) + " to " +
             std::to_string(setting.max) + ", such as 4096, 64K or 1M",
         text);
}

}  // namespace

network_sizes network_sizes_from(std::string_view text) {
  network_sizes result;
  while (!text.empty()) {
    auto comma = text.find(',');
    auto each = text.substr(0, comma);
    auto equals = each.find('=');
    const auto& of = field_named(each.substr(0, equals));
    of.set(result, size_from(of, equals == each.npos ? std::string_view() : each.substr(equals + 1)));
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return result;
}

std::string to_string(const network_sizes& sizes) {
  std::string text;
  for (const auto& each : fields)
    text += (text.empty() ? "" : ",") + std::string(each.name) + '=' + std::to_string(each.get(sizes));
  return text;
}

}  // namespace troupe::collective
