#include "troupe/snapshot/part/part.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/part/part_header.hpp"
#include "troupe/snapshot/part/part_layout.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::snapshot {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers and elements are copied as they lie in memory");

void check_tensors(const snapshot_part& part) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : part.tensors) {
    if (!value.defined()) throw_invalid("encode_part", "a defined tensor '" + name + "'", "an undefined one");
    if (!names.insert(name).second) throw_invalid("encode_part", "each name once", "'" + name + "' twice");
  }
}

void check_contents(const std::vector<tensor_contents>& contents, const std::vector<named_tensor>& tensors) {
  if (contents.size() != tensors.size())
    throw_invalid("encode_part", "contents of " + std::to_string(tensors.size()) + " tensors",
                  std::to_string(contents.size()));
  for (std::size_t at = 0; at < contents.size(); ++at) {
    const auto& one = contents[at];
    if (auto problem = problem_of(one); !problem.empty())
      throw_invalid("encode_part", "elements of the tensor", problem);
    const auto& [name, value] = tensors[at];
    if (one.name != name || one.type != value.dtype() || stored_shape(one) != value.shape())
      throw_invalid("encode_part", "contents of '" + name + "', " + describe(value),
                    "'" + one.name + "', " + std::string(to_string(one.type)) + to_string(stored_shape(one)));
  }
}

tensor_entry entry_of(const tensor_contents& held) {
  tensor_entry entry{{held.name},
                     static_cast<std::uint8_t>(held.type),
                     {held.whole},
                     {},
                     held.begin,
                     held.end,
                     held.replica.value_or(-1)};
  for (const auto& one : held.boxes) entry.boxes.values.push_back({{one.offset}, {one.extent}});
  return entry;
}

part_header header_of(const snapshot_part& part) {
  auto contents = part.contents.empty() ? whole_contents(part.tensors) : part.contents;
  check_contents(contents, part.tensors);
  part_header header{{part.job_id},        part.step, part.part, part.num_stages, part.generation,
                     {part.numeric_class}, {}};
  for (const auto& held : contents) header.tensors.values.push_back(entry_of(held));
  return header;
}

part_layout layout_of(const snapshot_part& part, std::size_t header_bytes) {
  part_layout layout{.header_bytes = header_bytes};
  for (const auto& named : part.tensors) layout.elements_bytes += padded_in_part(named.value.size_bytes());
  return layout;
}

/// Copies `source` to `offset` and zeroes up to the next multiple of 64; returns the offset after that.
std::size_t put_padded(std::span<std::byte> bytes, std::size_t offset, std::span<const std::byte> source) {
  auto end = offset + source.size();
  auto next = padded_in_part(end);
  std::ranges::copy(source, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  std::ranges::fill(bytes.subspan(end, next - end), std::byte{0});
  return next;
}

}  // namespace

tensor encode_part(const snapshot_part& part) {
  check_tensors(part);
  auto header = wire::encode(header_of(part));
  auto layout = layout_of(part, header.size());
  auto encoded = tensor::empty({static_cast<std::int64_t>(layout.total_bytes())}, dtype::u8);
  auto bytes = encoded.bytes();
  write_prefix(bytes, layout);
  auto offset = put_padded(bytes, part_prefix_bytes, header);
  for (const auto& named : part.tensors) offset = put_padded(bytes, offset, named.value.bytes());
  write_checksums(bytes, layout);
  return encoded;
}

}  // namespace troupe::snapshot
