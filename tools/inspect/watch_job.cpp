#include "inspect/watch_job.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "inspect/commands/command_dialog.hpp"
#include "inspect/job_record.hpp"
#include "inspect/screen/draw.hpp"
#include "inspect/snapshot_poller.hpp"
#include "inspect/snapshot_source.hpp"
#include "inspect/terminal.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

/// A job that has ended, and one whose rank 0 was replaced, do not answer at this address any more.
constexpr std::int64_t recorded_silence_ms = 10'000;

std::string problem_of(const snapshot_poller::state& seen) {
  auto since = time_text(static_cast<double>(posix::unix_now_ms() - seen.problem_since_ms) / 1000);
  return seen.problem + ". The job has ended, or rank 0 was replaced. Trying again since " + since;
}

/// What is shown of a running job, and the commands that are given to it.
struct watched_job {
  view_state shown;
  command_dialog dialog;
};

/// Of commands and of the connection; the keys that give commands where there is nothing else to tell.
screen notes_of(const snapshot_poller::state& seen, const watched_job& watched) {
  auto notes = lines_of(watched.dialog);
  if (!seen.problem.empty()) notes.push_back({problem_of(seen), row_style::bad});
  return notes.empty() ? command_keys_line(seen.newest, watched.shown) : notes;
}

int exit_code_of(int signal) { return signal == 0 || signal == SIGINT ? 0 : 128 + signal; }

/// The keys for commands go to the dialog, all others to the views; false when one ends the program. `job`:
/// as it was shown when they were pressed.
bool apply_keys(watched_job& watched, snapshot_poller& poller, const std::vector<key>& keys,
                const job_snapshot& job, screen_size size) {
  auto& shown = watched.shown;
  return std::ranges::all_of(keys, [&](const key& one) {
    auto drawn = draw_list(job, shown, size.columns);
    if (shown.is_filtering) return apply_key(shown, one, drawn.rows.size());
    auto press = press_key(watched.dialog, one, job, selected_actor(drawn, shown));
    if (press.send) poller.send(*std::move(press.send));
    return press.is_used || apply_key(shown, one, drawn.rows.size());
  });
}

/// Where a replay is.
struct replay_state {
  std::size_t position = 0;
  bool is_playing = false;
  bool is_command = false;  ///< the newest key was one for commands
};

void apply_replay_key(replay_state& replay, const key& pressed, std::size_t size) {
  auto last = size - 1;
  if (pressed == key{key_kind::text, ' '}) replay.is_playing = !replay.is_playing;
  if (pressed.kind == key_kind::left) replay.position -= std::min<std::size_t>(1, replay.position);
  if (pressed.kind == key_kind::right) replay.position = std::min(replay.position + 1, last);
}

/// Applies keys until one ends the program; false then.
bool apply_keys(view_state& shown, replay_state& replay, const std::vector<key>& keys, const past_job& past,
                screen_size size) {
  return std::ranges::all_of(keys, [&](const key& one) {
    bool was_filtering = shown.is_filtering;
    auto job = past.snapshot(replay.position);
    if (!apply_key(shown, one, draw_list(job, shown, size.columns).rows.size())) return false;
    if (!was_filtering) apply_replay_key(replay, one, past.size);
    replay.is_command = !was_filtering && is_command_key(one);
    return true;
  });
}

std::string replay_note(const replay_state& replay, const past_job& past, const job_snapshot& now) {
  if (replay.is_command) return "this is " + past.what + ": only a running job takes commands";
  if (past.size == 1) return past.note;
  auto first = past.snapshot(0).at_ms;
  return "replay " + std::to_string(replay.position + 1) + "/" + std::to_string(past.size) + ", " +
         time_text(static_cast<double>(now.at_ms - first) / 1000) + " after its begin" +
         (replay.is_playing ? ", playing" : "") + "   left right: one on   space: play" +
         (past.note.empty() ? "" : "   " + past.note);
}

}  // namespace

int watch_job(const inspector_address& address, const std::filesystem::path& record) {
  terminal screen;
  snapshot_poller poller(address, record);
  watched_job watched;
  while (true) {
    auto seen = poller.read();
    if (seen.failure) std::rethrow_exception(seen.failure);
    for (const auto& answer : poller.take_answers()) note_answer(watched.dialog, answer);
    note_outcomes(watched.dialog, seen.newest);
    auto size = screen.size();
    screen.show(draw_screen(seen.newest, watched.shown, notes_of(seen, watched), size));
    auto input = screen.wait(poller.news().fd(), snapshot_poller::interval);
    if (input.was_woken) poller.news().clear();
    if (input.signal != 0) return exit_code_of(input.signal);
    if (!apply_keys(watched, poller, input.keys, seen.newest, size)) return 0;
  }
}

int record_job(const inspector_address& address, const std::filesystem::path& record) {
  auto before = snapshot_source(address).read();  // to say at once that nobody answers
  job_record_writer writer(record);
  writer.add(before);
  std::fprintf(stderr, "troupe: recording to %s until the job or a signal ends it\n", record.c_str());
  snapshot_source source(address);
  std::size_t num = 1;
  auto answered_ms = posix::unix_now_ms();
  while (posix::unix_now_ms() - answered_ms < recorded_silence_ms) {
    std::this_thread::sleep_for(snapshot_poller::interval);
    try {
      writer.add(source.read());
      answered_ms = posix::unix_now_ms();
      ++num;
    } catch (const http::http_failure&) {
      continue;  // asked again
    }
  }
  std::fprintf(stderr, "troupe: the inspector has not answered for %lld s: %zu snapshots are in %s\n",
               static_cast<long long>(recorded_silence_ms / 1000), num, record.c_str());
  return 0;
}

int replay_job(const past_job& past) {
  terminal screen;
  view_state shown;
  replay_state replay;
  while (true) {
    auto now = past.snapshot(replay.position);
    auto size = screen.size();
    screen.show(draw_screen(now, shown, {{replay_note(replay, past, now), row_style::bad}}, size));
    auto input = screen.wait(-1, replay.is_playing ? snapshot_poller::interval : milliseconds(60'000));
    if (input.signal != 0) return exit_code_of(input.signal);
    if (!apply_keys(shown, replay, input.keys, past, size)) return 0;
    if (replay.is_playing && input.keys.empty() && !input.was_resized) {
      replay.position = std::min(replay.position + 1, past.size - 1);
      replay.is_playing = replay.position + 1 < past.size;
    }
  }
}

}  // namespace troupe
