#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "inspect/view_state.hpp"

namespace troupe {

enum class key_kind : std::uint8_t {
  text,
  up,
  down,
  page_up,
  page_down,
  left,
  right,
  home,
  end,
  enter,
  escape,
  tab,
  erase
};

struct key {
  key_kind kind = key_kind::text;
  char letter = 0;  ///< key_kind::text only
  bool operator==(const key&) const = default;
};

/// The keys in bytes that a terminal sent, which are taken from `bytes`. A sequence that is not whole yet
/// stays there; with `is_all`, nothing more comes soon, and an escape alone is that key.
std::vector<key> take_keys(std::string& bytes, bool is_all);

/// Whether the program goes on. `num_rows`: of the list that is shown, filtered.
bool apply_key(view_state& shown, const key& pressed, std::size_t num_rows);

}  // namespace troupe
