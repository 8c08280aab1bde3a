#include "troupe/schedule/action.hpp"

#include <charconv>
#include <system_error>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr std::string_view kind_letters = "FBIWRAGUS";

/// Whether an action of the kind names its axis, unless that is dp.
bool has_axis(action_kind kind) { return kind == action_kind::all_reduce || is_of_storage(kind); }
/// Whether its number is that of an optimizer step.
bool is_of_step(action_kind kind) { return kind == action_kind::apply || kind == action_kind::all_reduce; }

/// Cuts the number at the front of `rest` off; false if there is none.
bool take_number(std::string_view& rest, int& number) {
  auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (status != std::errc() || number < 0) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace

char letter_of(action_kind kind) { return kind_letters[static_cast<std::size_t>(kind)]; }

std::string to_string(const action& op) {
  auto text = std::to_string(op.stage) + letter_of(op.kind);
  bool has_number = is_of_microbatch(op) || op.kind == action_kind::reduce_gradient || op.microbatch != 0;
  if (has_number) text += std::to_string(op.microbatch);
  if (op.axis != layout::mesh_axis::dp) text += layout::to_string(op.axis);
  return text;
}

action action_from(std::string_view text) {
  action read;
  auto rest = text;
  bool is_action = take_number(rest, read.stage) && !rest.empty();
  auto letter = is_action ? kind_letters.find(rest.front()) : std::string_view::npos;
  is_action = letter != std::string_view::npos;
  if (is_action) {
    rest.remove_prefix(1);
    read.kind = static_cast<action_kind>(letter);
    for (auto axis : layout::mesh_axes)
      if (axis != read.axis && has_axis(read.kind) && rest.ends_with(layout::to_string(axis))) {
        read.axis = axis;
        rest.remove_suffix(layout::to_string(axis).size());
        break;
      }
    bool may_lack_number = is_of_step(read.kind) || is_of_storage(read.kind);
    if (!may_lack_number || !rest.empty())
      is_action = take_number(rest, read.microbatch) && !is_of_storage(read.kind) &&
                  !(is_of_step(read.kind) && read.microbatch == 0);
  }
  if (!is_action || !rest.empty())
    throw bad_input("'" + std::string(text) +
                    "' is no action. Write stage, kind (F, B, I, W, R, A, G, U or S) and microbatch, for "
                    "example 2F0; an A or G has none, or the number of a later optimizer step: 2A, 2A1; U "
                    "and S have none: 2U");
  return read;
}

}  // namespace troupe
