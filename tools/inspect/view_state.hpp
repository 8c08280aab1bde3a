#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe {

enum class inspect_view : std::uint8_t { actors, timeline, rates, findings, log };
constexpr int num_inspect_views = 5;

enum class actor_order : std::uint8_t { tree, state, restarts, mailbox };
constexpr int num_actor_orders = 4;

/// What the user looks at.
struct view_state {
  inspect_view view = inspect_view::actors;
  actor_order order = actor_order::tree;
  std::size_t selected = 0;   ///< row of the view's list
  std::string filter;         ///< only rows with this text in them; empty: all
  bool is_filtering = false;  ///< keys go to the filter
  bool is_open = false;       ///< the selected row is shown with all that is known of it
};

}  // namespace troupe
