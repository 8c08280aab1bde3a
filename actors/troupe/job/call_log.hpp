#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/posix/unnamed_file.hpp"

namespace troupe {

/// What the calls of a job came to, all of them, in order: a process that is started again makes them all
/// again, and is told the same as the first time.
///
/// Bounded in memory: the newest results are there, older ones are in a temporary file (some 160 bytes a
/// call), and 16 bytes for each 256 of them here. Of timelines only the newest is kept. A file that cannot be
/// written is warned of once, and then results stay in memory. Thread-safe.
class call_log {
 public:
  using warning = std::function<void(const std::string&)>;
  /// `folder` of the file, empty: that for temporary files.
  explicit call_log(
      warning warn = [](const std::string&) {}, std::filesystem::path folder = {})
      : warn_(std::move(warn)), file_(std::move(folder)) {}

  std::size_t size() const;
  /// Keeps the result if it is the next one; false: it is known, or others are missing before it.
  bool add(const call_result& result);
  /// All of them that follow on what is known.
  void add(const std::vector<call_result>& results);
  /// Throws std::out_of_range, system_failure.
  call_result at(std::size_t index) const;
  /// There must be one.
  call_result newest() const;
  /// At most `most_in_piece` results from `first` on; none beyond the end.
  static constexpr std::size_t most_in_piece = 256;
  std::vector<call_result> piece(std::size_t first) const;
  /// Of the calls from number `first` on, in which steps only grow: the one that took optimizer step `step`
  /// (from 0); none if no call has. By bisection.
  std::optional<call_result> trained(std::uint64_t step, std::size_t first = 0) const;

 private:
  /// `most_in_piece` results that are in memory no more.
  struct block {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
  };
  std::size_t num_in_blocks() const { return (blocks_.size() + kept_.size()) * most_in_piece; }
  std::size_t num_known() const { return num_in_blocks() + newest_.size(); }
  void spill();
  const std::vector<call_result>& read(std::size_t block_index) const;
  const call_result& look_up(std::size_t index) const;

  warning warn_;
  mutable std::mutex mutex_;
  std::vector<block> blocks_;
  std::vector<std::vector<std::byte>> kept_;  ///< blocks that could not be written, after those that were
  unnamed_file file_;
  std::vector<call_result> newest_;  ///< after those of the blocks
  mutable std::size_t cached_block_ = static_cast<std::size_t>(-1);
  mutable std::vector<call_result> cached_;
};

}  // namespace troupe
