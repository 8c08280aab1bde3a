#include "troupe/job/call_log.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::actors::job {

std::size_t call_log::size() const {
  std::lock_guard lock(mutex_);
  return num_known();
}

std::uint64_t call_log::bytes_on_disk() const {
  std::lock_guard lock(mutex_);
  return file_.size_bytes() + index_.size_bytes();
}

bool call_log::add(const call_result& result) {
  std::lock_guard lock(mutex_);
  auto known = num_known();
  if (result.index != known) return false;
  if (!newest_.empty()) std::vector<measured_action>().swap(newest_.back().last_step);
  // The newest result always stays in memory, with its timeline.
  if (newest_.size() == max_in_piece && !keeps_all_) drop();
  if (newest_.size() == max_in_piece) spill();
  newest_.push_back(result);
  return true;
}

void call_log::add(const std::vector<call_result>& results) {
  for (const auto& result : results) add(result);
}

/// Drops what no recovery needs: it restores at least the state after replays_from steps. Steps decrease
/// where another job begins, whose calls are repeated no more than those of older jobs: so the newest result
/// that is not needed is looked for. The last one stays.
void call_log::drop() {
  auto is_needed = [from = newest_.back().replays_from](const call_result& one) {
    return one.steps_done > from;
  };
  auto end = newest_.end() - 1;
  while (end != newest_.begin() && is_needed(*(end - 1))) --end;
  if (end == newest_.begin()) return;
  num_dropped_ += num_in_blocks() + static_cast<std::size_t>(end - newest_.begin());
  newest_.erase(newest_.begin(), end);
  kept_.clear();
  file_ = posix::unnamed_file(folder_);
  index_ = posix::unnamed_file(folder_);
  cached_block_ = static_cast<std::size_t>(-1);
}

/// Moves a block of results to the file. Once a block could not be written, later ones stay in memory too, so
/// that blocks stay in order.
void call_log::spill() {
  auto bytes = wire::encode(newest_);
  newest_.clear();
  if (kept_.empty()) {
    try {
      block written{file_.size_bytes(), bytes.size()};
      file_.append(bytes);
      index_.append(std::as_bytes(std::span(&written, 1)));
      return;
    } catch (const system_failure& problem) {
      warn_("results of calls stay in memory, some 100 bytes a call: " + std::string(problem.what()));
    }
  }
  kept_.push_back(std::move(bytes));
}

std::vector<std::byte> call_log::read_from_disk(std::size_t block_index) const {
  block wanted;
  auto bytes = index_.read(block_index * sizeof wanted, sizeof wanted);
  std::memcpy(&wanted, bytes.data(), sizeof wanted);
  return file_.read(wanted.offset, wanted.size_bytes);
}

const std::vector<call_result>& call_log::read(std::size_t block_index) const {
  if (cached_block_ == block_index) return cached_;
  cached_ = wire::decode<std::vector<call_result>>(
      block_index < num_on_disk() ? read_from_disk(block_index) : kept_[block_index - num_on_disk()]);
  cached_block_ = block_index;
  return cached_;
}

const call_result& call_log::look_up(std::size_t index) const {
  if (index < num_dropped_)
    throw std::out_of_range("[call_log] expected a call from number " + std::to_string(num_dropped_) +
                            " on, got number " + std::to_string(index) +
                            ": no process of this job repeats earlier ones");
  index -= num_dropped_;
  auto in_blocks = num_in_blocks();
  if (index < in_blocks) return read(index / max_in_piece)[index % max_in_piece];
  return newest_.at(index - in_blocks);
}

call_result call_log::at(std::size_t index) const {
  std::lock_guard lock(mutex_);
  return look_up(index);
}

call_result call_log::newest() const {
  std::lock_guard lock(mutex_);
  return newest_.back();
}

std::vector<call_result> call_log::piece(std::size_t first) const {
  std::lock_guard lock(mutex_);
  auto end = std::min(first + max_in_piece, num_known());
  std::vector<call_result> results;
  for (auto index = first; index < end; ++index) results.push_back(look_up(index));
  return results;
}

/// A binary search: steps_done never decreases from call to call.
std::optional<call_result> call_log::trained(std::uint64_t step, std::size_t first) const {
  std::lock_guard lock(mutex_);
  if (first >= num_known() || newest_.back().steps_done <= step) return {};
  auto begin = std::max(first, num_dropped_);
  auto end = num_known();
  for (auto last = end; begin < last;) {
    auto middle = begin + (last - begin) / 2;
    if (look_up(middle).steps_done > step)
      last = middle;
    else
      begin = middle + 1;
  }
  while (begin < end && !ends_steps(look_up(begin).kind)) ++begin;
  if (begin == end) return {};
  return look_up(begin);
}

}  // namespace troupe::actors::job
