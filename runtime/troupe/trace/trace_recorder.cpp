#include <limits>
#include <utility>

#include "troupe/trace/event_segment.hpp"
#include "troupe/trace/perfetto.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::trace {

trace_recorder::trace_recorder(int rank, std::size_t events_per_thread)
    : rank_(rank),
      since_ns_(std::numeric_limits<std::int64_t>::min()),
      own_(std::make_unique<event_segment>(
          event_segment_size{.events_per_ring = static_cast<std::uint32_t>(events_per_thread)}, rank)),
      segment_(own_.get()) {}

trace_recorder::trace_recorder(int rank, event_segment* of_process)
    : rank_(rank), since_ns_(now_ns()), segment_(of_process) {}

trace_recorder::~trace_recorder() {
  if (!own_)
    for (const auto* ring : rings_) segment_->release(*ring);
}

event_ring& trace_recorder::ring(const std::string& thread_name) {
  auto* made = segment_ ? segment_->claim(thread_name) : nullptr;
  if (!made) return keeps_nothing_;
  std::lock_guard lock(mutex_);
  return *rings_.emplace_back(made);
}

void trace_recorder::write_perfetto(const std::filesystem::path& file) const {
  auto recorded = segment_ ? segment_->copy() : process_events();
  recorded.rank = rank_;
  for (auto& thread : recorded.threads)
    std::erase_if(thread.events, [this](const trace_event& one) { return one.end_ns < since_ns_; });
  // Those of earlier processes of this process.
  std::erase_if(recorded.threads,
                [](const thread_events& thread) { return thread.has_ended && thread.events.empty(); });
  troupe::trace::write_perfetto({recorded}, file);
}

}  // namespace troupe::trace
