#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe {

/// Files of records, each any number of bytes (an image, a document), that are read one by one at random or
/// in sequence. Two files, little-endian:
///
///     FILE                                       FILE.index
///     offset  bytes  what                        offset  bytes  what
///          0      8  "TROUPERC"                       0      8  "TROUPERI"
///          8      4  format version, 1                8      4  format version, 1
///         12      4  zero                            12      4  zero
///         16         the records' bytes              16     16  each record: where it ends in FILE (8),
///                                                               its CRC-32 as zlib computes it (4), zero (4)

/// Writes a file of records. Neither of the two files is there before finish(); older ones are replaced.
/// After an exception nothing is published: what was written is removed, and add and finish throw
/// std::logic_error.
class record_writer {
 public:
  /// Throws bad_input if files cannot be written beside `file`, or one of the two is there and no regular
  /// file.
  explicit record_writer(std::filesystem::path file);
  record_writer(const record_writer&) = delete;
  record_writer& operator=(const record_writer&) = delete;
  /// Removes what was written unless finish() has returned.
  ~record_writer();

  /// Throws bad_input if the disk is full or fails.
  void add(std::span<const std::byte> record);
  /// Makes both files durable under their names. Nothing may be added afterwards.
  void finish();

 private:
  struct output;
  template <class Function>
  void write(const char* call, Function change);

  std::filesystem::path file_;
  std::unique_ptr<output> records_, index_;
  std::uint64_t end_;
};

/// A file of records that is open for reading; the index is read as it is needed. Thread-safe.
class record_file {
 public:
  /// Throws bad_input if one of the two files is missing, has another format or version, or they do not fit
  /// each other (one of them is truncated). The message names file, what was expected, what was found and
  /// what to do.
  explicit record_file(const std::filesystem::path& file);
  ~record_file();

  std::int64_t num_records() const;
  /// The bytes of a record. Throws std::invalid_argument for an index out of range, and bad_input for a
  /// record that is damaged.
  std::vector<std::byte> read(std::int64_t index);
  /// A hint for a range of records, see sample_reader.
  void will_read(std::int64_t first, std::int64_t count);
  void close();

 private:
  struct files;
  std::unique_ptr<files> files_;
};

/// Makes a sample [...] and its label of a record's bytes. Called from several threads at once.
using record_decoder = std::function<labelled_samples(std::span<const std::byte> record)>;

/// The records of a file as samples of shape `sample`, [...], which `decode` makes when they are read. Throws
/// bad_input as record_file does.
dataset_ptr record_dataset(const std::filesystem::path& file, const shape& sample, record_decoder decode);

}  // namespace troupe
