#include "troupe/snapshot/read_tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "troupe/contents/step_counts.hpp"

namespace troupe::snapshot {
namespace {

/// Some elements of a tensor, in row-major order from `first` on among those that are stored with them.
struct stored_box {
  box elements;
  std::int64_t first = 0;
};

std::vector<stored_box> stored_boxes(const tensor_contents& held) {
  std::vector<stored_box> stored;
  std::int64_t first = 0;
  for (auto& each : boxes_held(held)) {
    auto size = num_elements(each);
    stored.push_back({std::move(each), first});
    first += size;
  }
  return stored;
}

/// Where an element is stored, by its index on each axis.
std::int64_t index_of(const stored_box& box, const std::vector<std::int64_t>& position) {
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < position.size(); ++axis)
    index = index * box.elements.extent[axis] + position[axis] - box.elements.offset[axis];
  return box.first + index;
}

/// Calls visit(number of elements, index in a, index in b) for each run of `common`, which lies in both
/// boxes.
template <class Visit>
void for_each_run(const box& common, const stored_box& a, const stored_box& b, const Visit& visit) {
  auto rank = common.offset.size();
  if (common.extent == a.elements.extent && common.extent == b.elements.extent)
    return visit(num_elements(common), a.first, b.first);
  auto at = common.offset;
  for (;;) {
    visit(common.extent[rank - 1], index_of(a, at), index_of(b, at));
    auto axis = rank - 1;
    for (;; at[axis] = common.offset[axis]) {
      if (axis-- == 0) return;
      if (++at[axis] < common.offset[axis] + common.extent[axis]) break;
    }
  }
}

/// Elements of a tensor in a part, from `first` on among those that are stored.
using read_elements = std::function<void(std::int64_t first, std::span<std::byte> to)>;
constexpr std::int64_t compared_at_once = std::int64_t{1} << 18;

/// A tensor that is put together.
class gathered_tensor {
 public:
  explicit gathered_tensor(const tensor_contents& wanted)
      : wanted_(wanted),
        boxes_(stored_boxes(wanted)),
        missing_(boxes_held(wanted)),
        value_(tensor::empty(stored_shape(wanted), wanted.type)) {}

  /// The first box that is missing still; null: none.
  const box* missing() const { return missing_.empty() ? nullptr : &missing_.front(); }
  void set_unknown_steps() {
    value_.values<std::int64_t>()[0] = unknown_steps;
    missing_.clear();
  }
  bool lacks_some_of(const tensor_contents& held) const {
    if (!is_same_tensor(held)) return missing() != nullptr;  // `take` says what is wrong
    return belongs(held) && std::ranges::any_of(boxes_held(held), [&](const box& one) {
             return std::ranges::any_of(missing_,
                                        [&](const box& hole) { return intersection(hole, one).has_value(); });
           });
  }
  /// Copies what is missing, and compares the rest.
  void take(const tensor_contents& held, const read_elements& read, const layout::part_id& from);
  named_tensor result() const { return {wanted_.name, value_}; }

 private:
  bool is_same_tensor(const tensor_contents& held) const {
    return held.type == wanted_.type && held.whole == wanted_.whole;
  }
  bool belongs(const tensor_contents& held) const { return !held.replica || held.replica == wanted_.replica; }
  void take(const box& common, const stored_box& source, const stored_box& target, const read_elements& read);
  void require_equal(std::int64_t count, std::int64_t from, std::int64_t to, const box& where,
                     const read_elements& read) const;

  const tensor_contents& wanted_;
  std::vector<stored_box> boxes_;
  std::vector<box> missing_;
  tensor value_;
};

std::string described(const tensor_contents& one) {
  return std::string(to_string(one.type)) + to_string(shape(one.whole));
}

void gathered_tensor::take(const tensor_contents& held, const read_elements& read,
                           const layout::part_id& from) {
  if (!is_same_tensor(held))
    throw files::snapshot_error(to_string(from) + " of the snapshot holds " + held.name + " as " +
                                described(held) + ", but " + described(wanted_) + " is expected");
  if (!belongs(held)) return;
  for (const auto& source : stored_boxes(held))
    for (const auto& target : boxes_)
      if (auto common = intersection(source.elements, target.elements)) take(*common, source, target, read);
}

void gathered_tensor::take(const box& common, const stored_box& source, const stored_box& target,
                           const read_elements& read) {
  auto width = static_cast<std::int64_t>(size_bytes(wanted_.type));
  std::vector<box> known{common}, left;
  for (const auto& hole : missing_) {
    for (auto& rest : difference(hole, common)) left.push_back(std::move(rest));
    auto fresh = intersection(hole, common);
    if (!fresh) continue;
    for_each_run(*fresh, source, target, [&](auto count, auto from, auto to) {
      read(from, value_.bytes().subspan(static_cast<std::size_t>(to * width),
                                        static_cast<std::size_t>(count * width)));
    });
    std::vector<box> others;
    for (const auto& one : known)
      for (auto& rest : difference(one, *fresh)) others.push_back(std::move(rest));
    known = std::move(others);
  }
  missing_ = std::move(left);
  for (const auto& again : known)
    for_each_run(again, source, target,
                 [&](auto count, auto from, auto to) { require_equal(count, from, to, again, read); });
}

void gathered_tensor::require_equal(std::int64_t count, std::int64_t from, std::int64_t to, const box& where,
                                    const read_elements& read) const {
  auto width = static_cast<std::int64_t>(size_bytes(wanted_.type));
  std::vector<std::byte> again(static_cast<std::size_t>(std::min(count, compared_at_once) * width));
  for (std::int64_t done = 0; done < count; done += compared_at_once) {
    auto bytes =
        std::span(again).first(static_cast<std::size_t>(std::min(count - done, compared_at_once) * width));
    read(from + done, bytes);
    if (std::memcmp(value_.bytes().data() + (to + done) * width, bytes.data(), bytes.size()) != 0)
      throw files::snapshot_error("parts of the snapshot hold different values of " + wanted_.name + " " +
                                  to_string(where) + ", which must be equal: use another snapshot");
  }
}

using tensors_by_name = std::multimap<std::string_view, gathered_tensor>;

bool is_needed(const manifest_part& entry, const tensors_by_name& gathered) {
  auto lacks = [&](const tensor_contents& held) {
    auto [begin, end] = gathered.equal_range(held.name);
    return std::any_of(begin, end, [&](const auto& one) { return one.second.lacks_some_of(held); });
  };
  if (entry.contents) return std::ranges::any_of(*entry.contents, lacks);
  return std::ranges::any_of(gathered, [](const auto& one) { return one.second.missing() != nullptr; });
}

/// Replicas may differ in what no part marks as of one replica, such as running means: the parts of
/// `wanted`'s replica come before all others.
int distance(const layout::part_id& held, const layout::part_id& wanted) {
  if (held == wanted) return 0;
  return held.cell.replica == wanted.cell.replica ? 1 : 2;
}

}  // namespace

std::vector<named_tensor> read_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                       const std::vector<tensor_contents>& wanted,
                                       const layout::part_id& first) {
  tensors_by_name gathered;
  std::vector<gathered_tensor*> in_order;
  for (const auto& one : wanted)
    in_order.push_back(&gathered.emplace(one.name, gathered_tensor(one))->second);
  auto parts = manifest.parts;
  std::ranges::stable_sort(parts, {},
                           [&](const manifest_part& entry) { return distance(entry.part, first); });
  for (const auto& entry : parts) {
    if (!is_needed(entry, gathered)) continue;
    auto part = store.open_part(manifest, entry.part);
    for (std::size_t at = 0; at < part.contents().size(); ++at) {
      auto [begin, end] = gathered.equal_range(part.contents()[at].name);
      auto read = [&](std::int64_t begin_at, std::span<std::byte> to) { part.read(at, begin_at, to); };
      for (auto one = begin; one != end; ++one) one->second.take(part.contents()[at], read, entry.part);
    }
  }
  std::vector<named_tensor> result;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (in_order[at]->missing() && !manifest.counts_steps && is_step_count(wanted[at]))
      in_order[at]->set_unknown_steps();
    if (const auto* hole = in_order[at]->missing())
      throw files::snapshot_error("no part of the snapshot of step " + std::to_string(manifest.step) +
                                  " holds " + to_string(*hole) + " of " + wanted[at].name + " (" +
                                  described(wanted[at]) +
                                  "): it belongs to another model. Use another --snapshot-dir");
    result.push_back(in_order[at]->result());
  }
  return result;
}

}  // namespace troupe::snapshot
