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
#include "troupe/posix/files/unnamed_file.hpp"

namespace troupe::actors::job {

/// Which results a call_log keeps.
enum class kept_results : std::uint8_t {
  all,       ///< a process may be started again and repeat all calls, or a snapshot stores them
  for_steps  ///< nobody repeats calls: only those whose steps a restored state may lack
};

/// The results of all calls of a job, in order. A process that is started again repeats all calls and gets
/// the results of the first time from here.
///
/// Memory is bounded: the newest results are in memory, older ones in a temporary file (some 100 bytes per
/// call), with an index in another one. Only the newest result keeps its timeline (last_step). If
/// the file cannot be written, `warn` is called once and results stay in memory. Thread-safe.
///
/// With kept_results::for_steps neither memory nor the file grows with the number of calls: results are
/// dropped whose steps are before the newest call_result::replays_from.
class call_log {
 public:
  using warning = std::function<void(const std::string&)>;
  /// `folder` of the file, empty: that for temporary files.
  explicit call_log(
      warning warn = [](const std::string&) {}, std::filesystem::path folder = {},
      kept_results kept = kept_results::all)
      : warn_(std::move(warn)),
        folder_(std::move(folder)),
        keeps_all_(kept == kept_results::all),
        file_(folder_),
        index_(folder_) {}

  /// With those that are dropped.
  std::size_t size() const;
  /// Bytes in temporary files.
  std::uint64_t bytes_on_disk() const;
  /// Appends the result if its index is size(). False: it is known already, or earlier ones are missing.
  bool add(const call_result& result);
  /// Appends those that continue the log.
  void add(const std::vector<call_result>& results);
  /// Throws std::out_of_range, also for one that is dropped; system_failure.
  call_result at(std::size_t index) const;
  /// The log must not be empty.
  call_result newest() const;
  /// At most `max_in_piece` results from `first` on; none beyond the end. Throws as at.
  static constexpr std::size_t max_in_piece = 256;
  std::vector<call_result> piece(std::size_t first) const;
  /// The call, from number `first` on, that executed optimizer step `step` (from 0); none if no call has.
  /// Binary search: steps_done never decreases from `first` on.
  std::optional<call_result> trained(std::uint64_t step, std::size_t first = 0) const;

 private:
  /// `max_in_piece` results in the file.
  struct block {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  std::size_t num_on_disk() const { return index_.size_bytes() / sizeof(block); }
  std::size_t num_in_blocks() const { return (num_on_disk() + kept_.size()) * max_in_piece; }
  std::size_t num_known() const { return num_dropped_ + num_in_blocks() + newest_.size(); }
  void spill();
  void drop();
  std::vector<std::byte> read_from_disk(std::size_t block_index) const;
  const std::vector<call_result>& read(std::size_t block_index) const;
  const call_result& look_up(std::size_t index) const;

  warning warn_;
  std::filesystem::path folder_;
  bool keeps_all_ = true;
  std::size_t num_dropped_ = 0;  ///< results before this index are dropped
  mutable std::mutex mutex_;
  std::vector<std::vector<std::byte>> kept_;  ///< blocks that could not be written to the file
  posix::unnamed_file file_;
  posix::unnamed_file index_;        ///< of the blocks in file_, in order
  std::vector<call_result> newest_;  ///< after those of the blocks
  mutable std::size_t cached_block_ = static_cast<std::size_t>(-1);
  mutable std::vector<call_result> cached_;
};

}  // namespace troupe::actors::job
