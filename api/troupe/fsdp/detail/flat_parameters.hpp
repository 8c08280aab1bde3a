#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/layout/shard_layout.hpp"

namespace troupe::detail {

/// Parameters that lie one after the other in one tensor, cut into a part for each member of a group; this
/// member owns one part (the flat parameter of PyTorch's FSDP, Zhao et al. 2023, section 4.2). A parameter
/// begins at a whole cache line, and a cut lies at a block of one, so that nothing is padded or copied.
///
/// What the member owns of a parameter is a piece: a parameter of the same name, whose value is a view of the
/// own part. A whole parameter keeps its extents, another piece has one axis. Not thread-safe.
class flat_parameters {
 public:
  /// `parameters`: materialized; they outlive this object. Nothing is owned yet.
  explicit flat_parameters(std::vector<named_parameter> parameters);
  flat_parameters(const flat_parameters&) = delete;
  flat_parameters& operator=(const flat_parameters&) = delete;

  /// Cuts it anew, and owns part `own` of `values`, f32 [num_elements()]. `parts`: elements by member.
  /// `keeps_values`: the own part is a view of `values`, to which the parameters stay attached.
  void own_part_of(tensor values, std::vector<std::int64_t> parts, int own, bool keeps_values);

  const std::vector<named_parameter>& parameters() const { return parameters_; }
  /// The elements of each parameter, with those up to the next one.
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  std::int64_t num_elements() const { return num_elements_; }
  const std::vector<std::int64_t>& parts() const { return parts_; }
  std::int64_t num_own() const { return own_.defined() ? own_.num_elements() : 0; }
  /// f32 [num_own()]: where the own part is
  const tensor& own() const { return own_; }
  /// A view of parameter `index` in a tensor of this layout, with its shape.
  tensor view_of(const tensor& flat, std::size_t index) const;
  /// The own part of a tensor of this layout.
  tensor own_part(const tensor& flat) const { return flat.rows(first_, num_own()); }

  /// What of its parameter a piece is.
  struct piece_place {
    std::size_t index = 0;  ///< of the parameter
    std::int64_t first = 0, count = 0;
  };
  const std::vector<named_parameter>& pieces() const { return pieces_; }
  const piece_place& place_of(std::size_t piece) const { return places_[piece]; }
  /// The gradients of the pieces are views of `own`, f32 [num_own()].
  void attach_gradients(const tensor& own);
  /// The elements of a piece in a tensor with its parameter's shape.
  tensor piece_of(const tensor& whole, std::size_t piece) const;

  /// The parameters' values are views of `flat`.
  void attach(const tensor& flat);
  /// What was written to the values since they were attached goes to the own part.
  void take_writes();
  /// The same, and lets go of the values.
  void detach();
  bool is_attached() const { return attached_.defined(); }
  /// What is attached now.
  const tensor& attached() const { return attached_; }

 private:
  void make_pieces();

  std::vector<named_parameter> parameters_;
  std::vector<std::int64_t> sizes_, offsets_;
  std::int64_t num_elements_ = 0;
  std::vector<std::int64_t> parts_;
  std::int64_t first_ = 0;  ///< of the own part
  tensor own_;
  std::deque<parameter> made_;
  std::vector<named_parameter> pieces_;
  std::vector<piece_place> places_;
  tensor attached_;
  std::vector<std::uint64_t> versions_;  ///< [parameters] when they were attached
};

}  // namespace troupe::detail
