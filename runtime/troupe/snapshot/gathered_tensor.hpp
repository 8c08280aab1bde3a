#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "troupe/contents/tensor_contents.hpp"
#include "troupe/tensor/tensor.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::snapshot {

/// Elements of a tensor that something holds, from `first` on among those that are stored.
using read_elements = std::function<void(std::int64_t first, std::span<std::byte> to)>;

/// A tensor that is put together from the boxes of it that several parts hold.
class gathered_tensor {
 public:
  explicit gathered_tensor(tensor_contents wanted);

  /// The first box that is missing still; null: none.
  const box* missing() const { return missing_.empty() ? nullptr : &missing_.front(); }
  /// Of a count of steps, in place of what no part holds (step_counts.hpp).
  void set_unknown_steps();
  /// Whether `take` would do anything, or throw.
  bool lacks_some_of(const tensor_contents& held) const;
  /// Copies what is missing, and compares the rest. `from` holds it, in errors. Throws snapshot_error if it
  /// is another tensor of the name, or has other values.
  void take(const tensor_contents& held, const read_elements& read, const std::string& from);
  /// What is missing has any value.
  named_tensor result() const { return {wanted_.name, value_}; }

 private:
  /// Some elements of a tensor, in row-major order from `first` on among those that are stored with them.
  struct stored_box {
    box elements;
    std::int64_t first = 0;
  };
  static std::vector<stored_box> stored_boxes(const tensor_contents& held);
  static std::int64_t index_of(const stored_box& box, const std::vector<std::int64_t>& position);
  template <class Visit>
  static void for_each_run(const box& common, const stored_box& a, const stored_box& b, const Visit& visit);
  bool is_same_tensor(const tensor_contents& held) const;
  bool belongs(const tensor_contents& held) const { return !held.replica || held.replica == wanted_.replica; }
  void take(const box& common, const stored_box& source, const stored_box& target, const read_elements& read);
  void require_equal(std::int64_t count, std::int64_t from, std::int64_t to, const box& where,
                     const read_elements& read) const;

  tensor_contents wanted_;
  std::vector<stored_box> boxes_;
  std::vector<box> missing_;
  tensor value_;
};

/// Copies of the whole tensors of which `parts` hold elements, in name order. What several parts hold whole
/// is that of the first. Throws snapshot_error naming what no part holds.
std::vector<named_tensor> whole_tensors(const std::vector<wire::unpacked_state>& parts);

/// "f32[3, 4]", the whole tensor.
std::string described(const tensor_contents& one);

}  // namespace troupe::snapshot
