#pragma once
#include <cereal/cereal.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/layout/part_id.hpp"

namespace troupe::snapshot {

/// Text in a part's header. Cereal's own containers allocate their declared length at once. These grow with
/// their elements, so that a false length allocates no more than the actual bytes.
struct header_text {
  std::string value;

  template <class Archive>
  void save(Archive& archive) const {
    archive(static_cast<std::uint32_t>(value.size()));
    for (char letter : value) archive(letter);
  }
  template <class Archive>
  void load(Archive& archive) {
    std::uint32_t size = 0;
    archive(size);
    value.clear();
    for (char letter = 0; value.size() < size; value.push_back(letter)) archive(letter);
  }
};

/// A list in a part's header, read like header_text.
template <class T>
struct header_list {
  std::vector<T> values;

  template <class Archive>
  void save(Archive& archive) const {
    archive(static_cast<std::uint32_t>(values.size()));
    for (const auto& value : values) archive(value);
  }
  template <class Archive>
  void load(Archive& archive) {
    std::uint32_t size = 0;
    archive(size);
    values.clear();
    while (values.size() < size) {
      T value{};
      archive(value);
      values.push_back(std::move(value));
    }
  }
};

/// A box in a part's header.
struct box_entry {
  header_list<std::int64_t> offset, extent;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(offset, extent);
  }
};

/// The entry of one tensor in a part's header; see tensor_contents. `dtype` is the dtype's number.
struct tensor_entry {
  header_text name;
  std::uint8_t dtype = 0;
  header_list<std::int64_t> whole;
  header_list<box_entry> boxes;
  std::int64_t begin = 0, end = 0;
  std::int32_t replica = -1;  ///< -1: all replicas hold it alike

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, dtype, whole, boxes, begin, end, replica);
  }
};

/// The same in version 1: a whole tensor.
struct whole_tensor_entry {
  header_text name;
  std::uint8_t dtype = 0;
  header_list<std::int64_t> extents;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, dtype, extents);
  }
};

/// The Cereal header of an encoded part; see encode_part. `Id`: part_id, in version 1 the number of a stage.
template <class Id, class Entry>
struct part_header_of {
  header_text job_id;
  std::uint64_t step = 0;
  Id part{};
  std::uint32_t num_stages = 1;
  std::uint64_t generation = 0;
  header_text numeric_class;
  header_list<Entry> tensors;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(job_id, step, part, num_stages, generation, numeric_class, tensors);
  }
};
using part_header = part_header_of<layout::part_id, tensor_entry>;
using part_header_1 = part_header_of<std::uint32_t, whole_tensor_entry>;

}  // namespace troupe::snapshot
