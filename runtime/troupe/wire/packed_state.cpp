#include "troupe/wire/packed_state.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include "troupe/wire/codec.hpp"

namespace troupe::wire {
namespace {

constexpr std::size_t alignment_bytes = 64;

std::size_t aligned(std::size_t size_bytes) {
  return (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

struct entry {
  std::string name;
  std::uint8_t type = 0;
  std::vector<std::int64_t> extents;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, type, extents);
  }
};

std::vector<std::byte> table_of(const std::vector<named_tensor>& state) {
  std::vector<entry> table;
  for (const auto& [name, value] : state)
    table.push_back({name, static_cast<std::uint8_t>(value.dtype()), value.shape().extents()});
  return encode(table);
}

/// Writes `bytes` and zeros up to `size_bytes`; the rest of `out`. The memory may hold earlier data of this
/// process, which must not leave it: packed states go over the network and to disk.
std::span<std::byte> append(std::span<std::byte> out, std::span<const std::byte> bytes,
                            std::size_t size_bytes) {
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  std::ranges::fill(out.subspan(bytes.size(), size_bytes - bytes.size()), std::byte{0});
  return out.subspan(size_bytes);
}

/// The layout that the table says. Throws std::runtime_error if there is no such one.
std::pair<shape, dtype> layout_of(const entry& what) {
  try {
    return {shape(what.extents), dtype_from_number(what.type)};
  } catch (const std::invalid_argument& problem) {
    throw std::runtime_error("packed state: '" + what.name + "' is no tensor: " + problem.what());
  }
}

/// Keeps `whole` alive for a view into it.
tensor view_of(const tensor& whole, std::size_t offset, const entry& what) {
  auto [extents, type] = layout_of(what);
  auto elements = static_cast<std::size_t>(extents.num_elements());
  if (offset > whole.size_bytes() || elements > (whole.size_bytes() - offset) / size_bytes(type))
    throw std::runtime_error("packed state: '" + what.name + "' reaches beyond the end");
  auto owner = std::make_shared<tensor>(whole);
  auto* first = owner->bytes().data() + offset;
  return tensor::wrap(std::move(owner), first, std::move(extents), type);
}

}  // namespace

tensor packed_state_pool::take(std::size_t size_bytes) {
  tensor memory;
  {
    std::lock_guard lock(shelf_->mutex);
    auto fits = std::ranges::find(shelf_->free, size_bytes, &tensor::size_bytes);
    if (fits != shelf_->free.end()) {
      memory = std::move(*fits);
      shelf_->free.erase(fits);
    }
  }
  if (!memory.defined()) memory = tensor::empty({static_cast<std::int64_t>(size_bytes)}, dtype::u8);
  auto back = [home = std::weak_ptr(shelf_)](tensor* returned) {
    std::unique_ptr<tensor> owned(returned);
    if (auto shelf = home.lock()) {
      std::lock_guard lock(shelf->mutex);
      shelf->free.push_back(std::move(*owned));
    }
  };
  std::shared_ptr<tensor> owner(new tensor(memory), back);
  return tensor::wrap(std::move(owner), memory.bytes().data(), memory.shape(), dtype::u8);
}

tensor pack_state(const std::vector<named_tensor>& state, packed_state_pool& pool) {
  auto table = table_of(state);
  auto total = aligned(sizeof(std::uint64_t) + table.size());
  for (const auto& item : state) total += aligned(item.value.size_bytes());
  auto packed = pool.take(total);
  auto out = packed.bytes();
  std::uint64_t table_bytes = table.size();
  std::memcpy(out.data(), &table_bytes, sizeof table_bytes);
  out = out.subspan(sizeof table_bytes);
  out = append(out, table, aligned(sizeof table_bytes + table.size()) - sizeof table_bytes);
  for (const auto& item : state) out = append(out, item.value.bytes(), aligned(item.value.size_bytes()));
  return packed;
}

std::vector<named_tensor> unpack_state(const tensor& packed) {
  auto bytes = packed.bytes();
  std::uint64_t table_bytes = 0;
  if (bytes.size() < sizeof table_bytes) throw std::runtime_error("packed state: too short");
  std::memcpy(&table_bytes, bytes.data(), sizeof table_bytes);
  if (table_bytes > bytes.size() - sizeof table_bytes)
    throw std::runtime_error("packed state: truncated table");
  auto table = decode<std::vector<entry>>(bytes.subspan(sizeof table_bytes, table_bytes));
  auto offset = aligned(sizeof table_bytes + table_bytes);
  std::vector<named_tensor> state;
  for (const auto& what : table) {
    state.push_back({what.name, view_of(packed, offset, what)});
    offset += aligned(state.back().value.size_bytes());
  }
  return state;
}

}  // namespace troupe::wire
