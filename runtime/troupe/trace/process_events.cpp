#include "troupe/trace/process_events.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/safe_file.hpp"
#include "troupe/trace/event_segment.hpp"

namespace troupe::trace {
namespace {

/// More than any segment has; keeps sizes from overflowing.
constexpr std::uint32_t most_entries = 1U << 20;

std::size_t size_of_file(int file) {
  struct stat status {};
  check_posix(::fstat(file, &status), "look at a file of events");
  if (S_ISDIR(status.st_mode)) throw bad_input("it is a folder. Expected files events-RANK.INCARNATION.bin");
  return static_cast<std::size_t>(status.st_size);
}

event_segment_size checked_size(int file, std::size_t size_bytes) {
  event_segment_layout::header head;
  if (size_bytes < sizeof head ||
      ::pread(file, &head.magic, sizeof head.magic, 0) != static_cast<ssize_t>(sizeof head.magic) ||
      head.magic != event_segment_layout::magic)
    throw bad_input("it holds no events of a Troupe process");
  std::uint32_t numbers[4] = {};
  if (::pread(file, numbers, sizeof numbers, sizeof head.magic) != static_cast<ssize_t>(sizeof numbers))
    throw system_failure("read events", errno);
  if (numbers[0] != event_segment_layout::version)
    throw bad_input("its events have version " + std::to_string(numbers[0]) + ", expected version " +
                    std::to_string(event_segment_layout::version) +
                    ": read it with the Troupe that wrote it");
  event_segment_size size{numbers[1], numbers[2], numbers[3]};
  bool fits = size.num_rings <= most_entries && size.num_names <= most_entries && size.events_per_ring > 0 &&
              size.events_per_ring <= most_entries && event_segment_layout::size_bytes(size) == size_bytes;
  if (!fits) throw bad_input("its header does not match its size: it is damaged or incomplete");
  return size;
}

std::string text_at(const event_segment_layout& segment, std::size_t index) {
  if (index >= segment.size().num_names) return {};
  const auto& name = segment.name_at(index);
  auto length = name.length.load(std::memory_order_acquire);
  if (length == 0 || length > event_segment_layout::name::most_bytes + 1) return {};
  return {name.text, length - 1};
}

/// Nothing if another thread took the ring over meanwhile, or none ever had it.
bool copy_ring(const event_segment_layout& segment, std::size_t index, thread_events& copied) {
  auto& header = segment.ring_at(index);
  auto owner = header.owner.load();
  if (owner == 0 || owner % 2 != 0) return false;
  auto name = header.name.load();
  copied.name = name > 0 ? text_at(segment, name - 1) : std::string();
  copied.thread = header.thread.load();
  copied.has_ended = header.state.load() == event_ring_header::use::ended;
  event_ring ring(header, segment.slots_at(index), segment.size().events_per_ring);
  copied.events = ring.snapshot();
  copied.num_recorded = ring.num_recorded();
  if (copied.name.empty()) copied.name = "thread " + std::to_string(copied.thread);
  return header.owner.load() == owner;
}

/// In memory of this process, so that nobody can make the file smaller meanwhile.
process_events read_copy(int file, const event_segment_size& size) {
  event_memory memory(event_segment_layout::size_bytes(size));
  for (std::size_t done = 0; done < memory.size_bytes();) {
    auto got = ::pread(file, memory.get() + done, memory.size_bytes() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw system_failure("read events", got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
  return copy_layout({memory.get(), size});
}

bool is_sealed(int file) {
  auto seals = ::fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

std::span<const trace_event> newest(const std::vector<trace_event>& events, std::size_t count) {
  return std::span(events).last(std::min(count, events.size()));
}

void write_bytes(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  auto partial = file;
  partial += ".partial";
  auto [made, reason, error_number] = posix::create_anew(partial, 0600);
  if (!made) throw system_failure("write " + partial.string(), error_number);
  while (!bytes.empty()) {
    auto written = ::write(made.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      auto problem = written < 0 ? errno : ENOSPC;
      ::unlink(partial.c_str());
      throw system_failure("write " + partial.string(), problem);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  check_posix(::rename(partial.c_str(), file.c_str()), "rename " + partial.string());
}

}  // namespace

std::string process_events::name_of(const trace_event& event) const {
  return event.name > 0 && event.name <= names.size() ? names[event.name - 1] : std::string();
}

event_segment_size size_of_sealed(int file) {
  if (!is_sealed(file)) throw bad_input("the memory for events is not sealed against shrinking");
  return checked_size(file, size_of_file(file));
}

process_events copy_layout(const event_segment_layout& segment) {
  const auto& head = segment.head();
  process_events copied{.rank = head.rank,
                        .incarnation = head.incarnation,
                        .pid = head.pid,
                        .num_unrecorded = head.num_unrecorded,
                        .num_unnamed = head.num_unnamed};
  thread_events thread;
  for (std::size_t i = 0; i < segment.size().num_rings; ++i)
    if (copy_ring(segment, i, thread)) copied.threads.push_back(std::move(thread));
  // After the events, so that each name of theirs is there.
  for (std::size_t i = 0; i < segment.size().num_names && segment.name_at(i).length.load() > 0; ++i)
    copied.names.push_back(text_at(segment, i));
  return copied;
}

process_events read_events(int file) {
  auto size = checked_size(file, size_of_file(file));
  if (!is_sealed(file)) return read_copy(file, size);
  event_memory memory(event_segment_layout::size_bytes(size), file, true);
  return copy_layout({memory.get(), size});
}

process_events read_events(const std::filesystem::path& file) {
  posix::unique_fd opened(static_cast<int>(
      check_posix(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open " + file.string())));
  try {
    return read_events(opened.get());
  } catch (const bad_input& problem) {
    throw bad_input("cannot read " + file.string() + ": " + problem.what());
  }
}

void write_events(const process_events& written, const std::filesystem::path& file,
                  std::size_t events_per_thread) {
  std::size_t most = 1;
  for (const auto& thread : written.threads)
    most = std::max(most, newest(thread.events, events_per_thread).size());
  // The names keep their numbers; those of the threads may be new.
  event_segment made(
      {.num_rings = static_cast<std::uint32_t>(std::max<std::size_t>(1, written.threads.size())),
       .events_per_ring = static_cast<std::uint32_t>(most),
       .num_names = static_cast<std::uint32_t>(written.names.size() + written.threads.size())},
      written.rank, written.incarnation);
  auto& head = made.layout().head();
  head.pid = written.pid;
  head.num_unrecorded = written.num_unrecorded;
  head.num_unnamed = written.num_unnamed;
  for (const auto& name : written.names) made.number_of(name);
  for (std::size_t i = 0; i < written.threads.size(); ++i) {
    const auto& thread = written.threads[i];
    auto kept = newest(thread.events, events_per_thread);
    auto* ring = made.claim(thread.name);
    auto& header = made.layout().ring_at(i);
    header.thread = thread.thread;
    // Numbered as they were, so that it is known how many are missing.
    header.count = thread.num_recorded - std::min<std::uint64_t>(thread.num_recorded, kept.size());
    for (const auto& event : kept) ring->record(event);
    if (thread.has_ended) header.state = event_ring_header::use::ended;
  }
  head.num_unnamed = written.num_unnamed;
  write_bytes(file, made.bytes());
}

std::string describe(const process_events& process, const trace_event& event) {
  using enum trace_kind;
  std::string text(to_string(event.kind));
  bool is_wait = event.kind == wait || event.kind == wait_begun;
  bool waits_for_call = is_wait && event.detail == static_cast<std::uint8_t>(wait_reason::collective);
  bool is_call = event.kind == collective || event.kind == collective_begun || waits_for_call;
  if (event.kind == action_begun) text += " " + std::string(to_string(static_cast<trace_kind>(event.detail)));
  if (is_wait) text += " for " + std::string(to_string(static_cast<wait_reason>(event.detail)));
  if (auto name = process.name_of(event); !name.empty()) text += " " + name;
  auto add = [&text](const char* what, auto number) {
    text += std::string(" ") + what + " " + std::to_string(number);
  };
  if (event.stage >= 0) add("stage", event.stage);
  if (event.microbatch >= 0) add("microbatch", event.microbatch);
  if (event.peer >= 0) add(event.kind == send ? "to rank" : "from rank", event.peer);
  if (event.bytes > 0) add("bytes", event.bytes);
  if (is_call && event.step > 0) add("sequence", event.step);
  if (!is_call && (event.stage >= 0 || event.kind == commit)) add("step", event.step);
  if (event.generation > 0) add("generation", event.generation);
  return text;
}

}  // namespace troupe::trace
