#include "troupe/snapshot/gathered_tensor.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "troupe/contents/step_counts.hpp"
#include "troupe/files/snapshot_error.hpp"

namespace troupe::snapshot {
namespace {

constexpr std::int64_t compared_at_once = std::int64_t{1} << 18;

/// All elements of the tensor of which `held` has some.
tensor_contents whole_contents_of(const tensor_contents& held) {
  auto all = held;
  all.boxes = {whole_box(shape(held.whole))};
  all.begin = 0;
  all.end = num_elements(all.boxes[0]);
  return all;
}

}  // namespace

std::string described(const tensor_contents& one) {
  return std::string(to_string(one.type)) + to_string(shape(one.whole));
}

gathered_tensor::gathered_tensor(tensor_contents wanted)
    : wanted_(std::move(wanted)),
      boxes_(stored_boxes(wanted_)),
      missing_(boxes_held(wanted_)),
      value_(tensor::empty(stored_shape(wanted_), wanted_.type)) {}

std::vector<gathered_tensor::stored_box> gathered_tensor::stored_boxes(const tensor_contents& held) {
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
std::int64_t gathered_tensor::index_of(const stored_box& box, const std::vector<std::int64_t>& position) {
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < position.size(); ++axis)
    index = index * box.elements.extent[axis] + position[axis] - box.elements.offset[axis];
  return box.first + index;
}

/// Calls visit(number of elements, index in a, index in b) for each run of `common`, which lies in both
/// boxes.
template <class Visit>
void gathered_tensor::for_each_run(const box& common, const stored_box& a, const stored_box& b,
                                   const Visit& visit) {
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

bool gathered_tensor::is_same_tensor(const tensor_contents& held) const {
  return held.type == wanted_.type && held.whole == wanted_.whole;
}

void gathered_tensor::set_unknown_steps() {
  value_.values<std::int64_t>()[0] = unknown_steps;
  missing_.clear();
}

bool gathered_tensor::lacks_some_of(const tensor_contents& held) const {
  if (!is_same_tensor(held)) return missing() != nullptr;  // `take` says what is wrong
  return belongs(held) && std::ranges::any_of(boxes_held(held), [&](const box& one) {
           return std::ranges::any_of(missing_,
                                      [&](const box& hole) { return intersection(hole, one).has_value(); });
         });
}

void gathered_tensor::take(const tensor_contents& held, const read_elements& read, const std::string& from) {
  if (!is_same_tensor(held))
    throw files::snapshot_error(from + " holds " + held.name + " as " + described(held) + ", but " +
                                described(wanted_) + " is expected");
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
      throw files::snapshot_error("parts hold different values of " + wanted_.name + " " + to_string(where) +
                                  ", which must be equal: use another snapshot");
  }
}

std::vector<named_tensor> whole_tensors(const std::vector<wire::unpacked_state>& parts) {
  std::map<std::string, tensor> whole;
  std::map<std::string, gathered_tensor> pieces;
  for (const auto& part : parts)
    for (std::size_t at = 0; at < part.tensors.size(); ++at) {
      const auto& held = part.contents[at];
      const auto& value = part.tensors[at].value;
      if (is_whole(held)) {
        if (!whole.contains(held.name)) whole.emplace(held.name, value.clone());
        continue;
      }
      auto& gathered = pieces.try_emplace(held.name, whole_contents_of(held)).first->second;
      auto width = static_cast<std::int64_t>(size_bytes(held.type));
      auto read = [&](std::int64_t first, std::span<std::byte> to) {
        std::ranges::copy(value.bytes().subspan(static_cast<std::size_t>(first * width), to.size()),
                          to.begin());
      };
      if (gathered.missing()) gathered.take(held, read, "a part of " + held.name);
    }
  for (const auto& [name, gathered] : pieces) {
    if (whole.contains(name)) continue;
    if (const auto* hole = gathered.missing())
      throw files::snapshot_error("no part holds " + to_string(*hole) + " of " + name);
    whole.emplace(name, gathered.result().value);
  }
  std::vector<named_tensor> found;
  for (auto& [name, value] : whole) found.push_back({name, value});
  return found;
}

}  // namespace troupe::snapshot
