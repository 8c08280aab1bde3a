#include "inspect/keys.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t rows_of_page = 10;

constexpr std::array<std::pair<std::string_view, key_kind>, 14> sequences = {
    {{"\x1b[A", key_kind::up},
     {"\x1b[B", key_kind::down},
     {"\x1b[C", key_kind::right},
     {"\x1b[D", key_kind::left},
     {"\x1bOA", key_kind::up},
     {"\x1bOB", key_kind::down},
     {"\x1bOC", key_kind::right},
     {"\x1bOD", key_kind::left},
     {"\x1b[H", key_kind::home},
     {"\x1b[F", key_kind::end},
     {"\x1b[1~", key_kind::home},
     {"\x1b[4~", key_kind::end},
     {"\x1b[5~", key_kind::page_up},
     {"\x1b[6~", key_kind::page_down}}};

/// The length of a sequence of a key that is not known; 0: it is not whole.
std::size_t unknown_length(std::string_view bytes) {
  if (bytes.size() < 2) return 0;
  if (bytes[1] != '[' && bytes[1] != 'O') return 1;
  for (std::size_t at = 2; at < bytes.size(); ++at)
    if (bytes[at] >= '@' && bytes[at] <= '~') return at + 1;
  return 0;
}

std::optional<key> plain_key(char byte) {
  if (byte == '\r' || byte == '\n') return key{key_kind::enter};
  if (byte == '\t') return key{key_kind::tab};
  if (byte == 0x7f || byte == '\b') return key{key_kind::erase};
  if (byte >= ' ' && byte <= '~') return key{key_kind::text, byte};
  return {};
}

void show(view_state& shown, inspect_view view) {
  shown.view = view;
  shown.selected = 0;
  shown.is_open = false;
}

bool filter_with(view_state& shown, const key& pressed) {
  if (pressed.kind == key_kind::text) shown.filter += pressed.letter;
  if (pressed.kind == key_kind::erase && !shown.filter.empty()) shown.filter.pop_back();
  if (pressed.kind == key_kind::escape) shown.filter.clear();
  if (pressed.kind == key_kind::escape || pressed.kind == key_kind::enter) shown.is_filtering = false;
  shown.selected = 0;
  return true;
}

bool apply_letter(view_state& shown, char letter) {
  if (letter == 'q') return false;
  if (letter >= '1' && letter < '1' + num_inspect_views) show(shown, static_cast<inspect_view>(letter - '1'));
  if (letter == '/') shown.is_filtering = true;
  if (letter == 's' && shown.view == inspect_view::actors)
    shown.order = static_cast<actor_order>((static_cast<int>(shown.order) + 1) % num_actor_orders);
  return true;
}

}  // namespace

std::vector<key> take_keys(std::string& bytes, bool is_all) {
  std::vector<key> keys;
  std::size_t at = 0;
  while (at < bytes.size()) {
    auto rest = std::string_view(bytes).substr(at);
    if (rest[0] != '\x1b') {
      if (auto found = plain_key(rest[0])) keys.push_back(*found);
      ++at;
      continue;
    }
    auto known =
        std::ranges::find_if(sequences, [&](const auto& one) { return rest.starts_with(one.first); });
    if (known != sequences.end()) {
      keys.push_back({known->second});
      at += known->first.size();
      continue;
    }
    auto length = unknown_length(rest);
    if (length == 0 && !is_all) break;
    if (length <= 1) keys.push_back({key_kind::escape});
    at += std::max<std::size_t>(1, length);
  }
  bytes.erase(0, at);
  return keys;
}

bool apply_key(view_state& shown, const key& pressed, std::size_t num_rows) {
  if (shown.is_filtering) return filter_with(shown, pressed);
  auto last = num_rows > 0 ? num_rows - 1 : 0;
  shown.selected = std::min(shown.selected, last);
  switch (pressed.kind) {
    case key_kind::text:
      return apply_letter(shown, pressed.letter);
    case key_kind::up:
      shown.selected -= std::min<std::size_t>(1, shown.selected);
      break;
    case key_kind::down:
      shown.selected = std::min(shown.selected + 1, last);
      break;
    case key_kind::page_up:
      shown.selected -= std::min(rows_of_page, shown.selected);
      break;
    case key_kind::page_down:
      shown.selected = std::min(shown.selected + rows_of_page, last);
      break;
    case key_kind::home:
      shown.selected = 0;
      break;
    case key_kind::end:
      shown.selected = last;
      break;
    case key_kind::enter:
      shown.is_open = !shown.is_open && num_rows > 0;
      break;
    case key_kind::escape:
      shown.is_open = false;
      break;
    case key_kind::tab:
      show(shown, static_cast<inspect_view>((static_cast<int>(shown.view) + 1) % num_inspect_views));
      break;
    case key_kind::left:
    case key_kind::right:
    case key_kind::erase:
      break;
  }
  return true;
}

}  // namespace troupe
