#pragma once
#include <cereal/cereal.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

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

/// The entry of one tensor in a part's header. `dtype` is the dtype's number.
struct tensor_entry {
  header_text name;
  std::uint8_t dtype = 0;
  header_list<std::int64_t> extents;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, dtype, extents);
  }
};

/// The Cereal header of an encoded part; see encode_part.
struct part_header {
  header_text job_id;
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
  std::uint32_t num_stages = 1;
  std::uint64_t generation = 0;
  header_text numeric_class;
  header_list<tensor_entry> tensors;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(job_id, step, stage, num_stages, generation, numeric_class, tensors);
  }
};

}  // namespace troupe
