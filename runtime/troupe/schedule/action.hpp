#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/layout/mesh_shape.hpp"

namespace troupe {

/// | letter | meaning | PyTorch's name |
/// |---|---|---|
/// | F | forward | F |
/// | B | backward: I, then W | B |
/// | I, W | input gradient, weight gradient | I, W |
/// | R | gradients or norms combined with other stages' | |
/// | G | gradients added up, or weights averaged, over the lanes along an axis of the mesh | REDUCE_GRAD |
/// | U | the stage's parameters gathered from their shards | UNSHARD |
/// | S | gathered parameters freed again | RESHARD |
/// | A | the optimizer's step | |
///
/// The numbers go over the wire.
enum class action_kind : std::uint8_t {
  forward = 0,
  backward = 1,
  input_gradient = 2,
  weight_gradient = 3,
  reduce_gradient = 4,
  apply = 5,
  all_reduce = 6,
  unshard = 7,
  reshard = 8
};
constexpr std::size_t num_action_kinds = 9;

/// One computation or communication of a plan, written "2F0": stage, kind, number. U and S have no number. G,
/// U and S name their axis of the mesh unless it is dp ("2Gtp").
///
/// | kind | number |
/// |---|---|
/// | F, B, I, W | of the microbatch |
/// | R | of the reduction |
/// | A, G | of the optimizer's step among plan::flush_every; left out where it is 0 ("2A", then "2A1") |
struct action {
  int stage = 0;
  action_kind kind = action_kind::forward;
  int microbatch = 0;
  layout::mesh_axis axis = layout::mesh_axis::dp;  ///< of a G, U or S
  bool operator==(const action&) const = default;
};

/// F, B, I and W, whose number is a microbatch's.
constexpr bool is_of_microbatch(action_kind kind) { return kind <= action_kind::weight_gradient; }
constexpr bool is_of_microbatch(const action& op) { return is_of_microbatch(op.kind); }
/// F, B and I, which read the stage's parameters.
constexpr bool reads_parameters(action_kind kind) { return kind <= action_kind::input_gradient; }
/// U and S, which say when a stage holds all of its parameters.
constexpr bool is_of_storage(action_kind kind) {
  return kind == action_kind::unshard || kind == action_kind::reshard;
}

/// 'F' of a forward, and so on.
char letter_of(action_kind kind);
/// The number 0 of an A or a G is left out.
std::string to_string(const action& op);
/// Throws bad_input naming the text and the notation.
action action_from(std::string_view text);

}  // namespace troupe
