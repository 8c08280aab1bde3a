#pragma once
#include <spdlog/sinks/base_sink.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::actors::inspector {

/// The newest lines of a process's log, in bounded memory. Thread-safe.
class log_tail final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static constexpr std::size_t max_lines = 500, max_line_bytes = 2000;
  struct line {
    std::uint64_t number = 0;  ///< from 1
    std::int64_t at_ms = 0;    ///< Unix time
    std::string level, text;   ///< text: without time and level, cut to max_line_bytes
  };
  /// The kept lines after number `number`, oldest first.
  std::vector<line> after(std::uint64_t number);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  std::deque<line> lines_;
  std::uint64_t newest_ = 0;
};

}  // namespace troupe::actors::inspector
