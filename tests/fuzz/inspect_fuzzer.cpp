// What `troupe inspect` and `troupe events` read: records of a job, drawn in all views, and events of lost
// processes. The first byte chooses.
#include "fuzz/fuzzer.hpp"
#include "inspect/job_record.hpp"
#include "inspect/screen/draw.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trace/event_segment.hpp"
#include "troupe/trace/perfetto.hpp"

namespace troupe::fuzz {
namespace {

void draw(const job_snapshot& job) {
  static_cast<void>(draw_all(job, 80));
  for (int view = 0; view < num_inspect_views; ++view) {
    view_state shown;
    shown.view = static_cast<inspect_view>(view);
    shown.is_open = view % 2 == 0;
    shown.order = static_cast<actor_order>(view % num_actor_orders);
    expect(draw_screen(job, shown, {{"note"}}, {10, 40}).size() == 10, "a screen has another number of rows");
  }
}

void try_record(std::string_view text) {
  job_record record(inputs().write("record", text));
  for (std::size_t i = 0; i < std::min<std::size_t>(record.size(), 4); ++i) draw(record.at(i));
}

void try_events(std::string_view text) {
  auto read = trace::read_events(inputs().write("events-0.0.bin", text));
  for (const auto& thread : read.threads)
    for (const auto& event : thread.events) static_cast<void>(describe(read, event));
  trace::write_perfetto({read}, inputs().path() / "trace.json");
}

}  // namespace

void try_input(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  auto text = text_of(bytes.subspan(1));
  allow<bad_input>([&] { static_cast<unsigned>(bytes[0]) % 2 == 0 ? try_record(text) : try_events(text); });
}

std::vector<std::string> seeds() {
  trace::event_segment segment({.num_rings = 2, .events_per_ring = 4, .num_names = 4}, 1);
  auto* ring = segment.claim("device 0");
  ring->record({.begin_ns = 1,
                .end_ns = 2,
                .generation = 1,
                .step = 2,
                .stage = 0,
                .microbatch = 1,
                .name = segment.number_of("dp")});
  auto file = inputs().path() / "events";
  write_events(segment.copy(), file, 4);
  job_snapshot job;
  job.at_ms = 1;
  job.parts["job"] = {{"step", 1}, {"end_step", 2}, {"loss", 0.5}, {"call_kind", "train"}, {"job_id", "a"}};
  job.parts["actors"] = {{"actors",
                          {{{"id", "0#0/stage/1"},
                            {"parent", nullptr},
                            {"role", "stage"},
                            {"state", "running"},
                            {"restarts", 1},
                            {"rank", 0}}}}};
  job.parts["devices"] = {
      {"devices", {{{"device", 0}, {"activity", "computing"}, {"action", "2F0"}, {"rank", 0}}}}};
  job.parts["findings"] = {{"findings", {{{"kind", "straggler"}, {"text", "slow"}, {"since_ms", 1}}}}};
  job.parts["timeline"] = {{"step", 3},
                           {"measured",
                            {{"unit", "s"},
                             {"makespan", 1.0},
                             {"idle", {0.5}},
                             {"devices", {{{{"action", "0F0"}, {"begin", 0.0}, {"end", 0.5}}}}}}}};
  job.parts["links"] = {{"links", {{{"rank", 0}, {"tensors_sent", 1}, {"bytes_sent_per_s", 2.0}}}}};
  job.parts["log"] = {{"lines", {{{"number", 1}, {"at_ms", 1}, {"level", "warn"}, {"text", "a"}}}}};
  auto record = inputs().path() / "written";
  job_record_writer writer(record);
  writer.add(job);
  writer.add(job);
  return {'\0' + text_in(record), '\1' + text_in(file)};
}

}  // namespace troupe::fuzz
