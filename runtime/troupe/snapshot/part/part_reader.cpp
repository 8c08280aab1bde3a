#include "troupe/snapshot/part/part_reader.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "troupe/files/open_file.hpp"
#include "troupe/snapshot/part/part_header.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::snapshot {
namespace {

class memory_source final : public part_source {
 public:
  explicit memory_source(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t size) override {
    return bytes_.subspan(offset, size);
  }

 private:
  std::span<const std::byte> bytes_;
};

class file_source final : public part_source {
 public:
  file_source(const std::filesystem::path& file, std::uint64_t size_bytes) : file_(file) {
    if (file_.size_bytes() != size_bytes)
      throw files::snapshot_error("it has " + std::to_string(file_.size_bytes()) + " bytes instead of " +
                                  std::to_string(size_bytes));
  }
  std::uint64_t size_bytes() const override { return file_.size_bytes(); }
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t size) override {
    if (held_.size() < size) held_.resize(size);
    auto bytes = std::span(held_).first(size);
    file_.read_at(offset, bytes);
    return bytes;
  }

 private:
  files::regular_file file_;
  std::vector<std::byte> held_;
};

tensor_contents contents_from(const tensor_entry& entry) {
  tensor_contents held{
      entry.name.value, dtype_from_number(entry.dtype), entry.whole.values, {}, entry.begin, entry.end, {}};
  for (const auto& one : entry.boxes.values) held.boxes.push_back({one.offset.values, one.extent.values});
  if (entry.replica >= 0) held.replica = entry.replica;
  if (auto problem = problem_of(held); !problem.empty())
    throw files::snapshot_error("damaged header: " + problem);
  return held;
}

tensor_contents contents_from(const whole_tensor_entry& entry) {
  shape extents(entry.extents.values);
  return {entry.name.value,
          dtype_from_number(entry.dtype),
          extents.extents(),
          {whole_box(extents)},
          0,
          extents.num_elements(),
          {}};
}

layout::part_id part_id_from(const layout::part_id& found) { return found; }
layout::part_id part_id_from(std::uint32_t stage) { return {{.stage = static_cast<int>(stage)}}; }

template <class Header>
snapshot_part part_from(const Header& header) {
  snapshot_part part{header.job_id.value,
                     header.step,
                     part_id_from(header.part),
                     header.num_stages,
                     header.generation,
                     header.numeric_class.value,
                     {}};
  std::set<std::string> names;
  for (const auto& entry : header.tensors.values) {
    part.contents.push_back(contents_from(entry));
    if (!names.insert(entry.name.value).second)
      throw files::snapshot_error("damaged header: it lists '" + entry.name.value + "' twice");
  }
  return part;
}

snapshot_part header_from(std::span<const std::byte> bytes, std::uint32_t version) {
  try {
    return version == 1 ? part_from(wire::decode<part_header_1>(bytes))
                        : part_from(wire::decode<part_header>(bytes));
  } catch (const wire::decode_error& problem) {
    throw files::snapshot_error(std::string("damaged header: ") + problem.what());
  } catch (const std::invalid_argument& problem) {
    throw files::snapshot_error(std::string("damaged header: ") + problem.what());
  }
}

void require_equal(const files::checksum& found, std::span<const std::byte> expected) {
  if (!std::ranges::equal(found, expected))
    throw files::snapshot_error("damaged: checksum " + wire::to_hex(found) + ", expected " +
                                wire::to_hex(expected));
}

}  // namespace

std::unique_ptr<part_source> source_in(std::span<const std::byte> encoded) {
  return std::make_unique<memory_source>(encoded);
}

std::unique_ptr<part_source> source_in(const std::filesystem::path& file, std::uint64_t size_bytes) {
  return std::make_unique<file_source>(file, size_bytes);
}

part_reader::part_reader(std::unique_ptr<part_source> source, std::function<void()> on_progress)
    : source_(std::move(source)), on_progress_(std::move(on_progress)) {
  auto size = source_->size_bytes();
  layout_ = read_prefix(source_->at(0, std::min<std::uint64_t>(size, part_prefix_bytes)), size);
  auto end = source_->at(layout_.table_begin(), layout_.total_bytes() - layout_.table_begin());
  block_checksums_.assign(end.begin(), end.end() - files::checksum_bytes);
  std::ranges::copy(end.last(files::checksum_bytes), checksum_.begin());
  is_checked_.resize((layout_.elements_bytes + part_block_bytes - 1) / part_block_bytes);
  auto begin = source_->at(0, layout_.elements_begin());
  if (layout_.version < first_version_with_blocks) {
    check_whole();
    begin = source_->at(0, layout_.elements_begin());
  } else {
    files::running_checksum all;
    all.add(begin);
    all.add(block_checksums_);
    require_equal(all.result(), checksum_);
  }
  header_ = header_from(begin.subspan(part_prefix_bytes, layout_.header_bytes), layout_.version);
  check_places();
}

void part_reader::check_whole() {
  files::running_checksum all;
  for (std::uint64_t first = 0; first < layout_.checksum_begin(); first += part_block_bytes) {
    all.add(source_->at(first, std::min(part_block_bytes, layout_.checksum_begin() - first)));
    on_progress_();
  }
  require_equal(all.result(), checksum_);
  is_checked_.assign(is_checked_.size(), true);
}

/// Of the tensors in the elements.
void part_reader::check_places() {
  std::uint64_t next = 0;
  for (const auto& held : header_.contents) {
    auto extents = stored_shape(held);
    auto left = layout_.elements_bytes - next;
    if (static_cast<std::uint64_t>(extents.num_elements()) > left / size_bytes(held.type))
      throw files::snapshot_error("damaged: tensor '" + held.name + "' of shape " + to_string(extents) +
                                  " does not fit into the remaining elements");
    begins_.push_back(next);
    next += padded_in_part(static_cast<std::uint64_t>(extents.num_elements()) * size_bytes(held.type));
  }
  if (next < layout_.elements_bytes)
    throw files::snapshot_error("damaged: elements that belong to no tensor");
}

std::span<const std::byte> part_reader::block(std::uint64_t number) {
  if (held_ == number) return held_bytes_;
  held_.reset();
  auto first = number * part_block_bytes;
  held_bytes_ = source_->at(layout_.elements_begin() + first,
                            std::min(part_block_bytes, layout_.elements_bytes - first));
  on_progress_();
  if (!is_checked_[number])
    require_equal(
        files::checksum_of(held_bytes_),
        std::span(block_checksums_).subspan(number * files::checksum_bytes).first(files::checksum_bytes));
  is_checked_[number] = true;
  held_ = number;
  return held_bytes_;
}

void part_reader::read(std::size_t tensor, std::int64_t first, std::span<std::byte> to) {
  auto width = size_bytes(header_.contents.at(tensor).type);
  for (auto at = begins_[tensor] + static_cast<std::uint64_t>(first) * width; !to.empty();) {
    auto bytes = block(at / part_block_bytes).subspan(at % part_block_bytes);
    bytes = bytes.first(std::min(bytes.size(), to.size()));
    std::memcpy(to.data(), bytes.data(), bytes.size());
    to = to.subspan(bytes.size());
    at += bytes.size();
  }
}

named_tensor part_reader::read(std::size_t tensor) {
  const auto& held = header_.contents.at(tensor);
  auto value = troupe::tensor::empty(stored_shape(held), held.type);
  read(tensor, 0, value.bytes());
  return {held.name, std::move(value)};
}

void part_reader::check() {
  for (std::uint64_t number = 0; number < is_checked_.size(); ++number)
    if (!is_checked_[number]) block(number);
}

}  // namespace troupe::snapshot
