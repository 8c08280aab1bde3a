#include "recovery_text.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

std::string with_milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

}  // namespace

std::string describe_loss(const member_loss& loss) {
  if (loss.rank < 0) return "an actor failed (" + loss.cause + ")";
  auto verb =
      loss.cause.starts_with("killed") || loss.cause.starts_with("ended by") ? " was " : " ended with ";
  return "rank " + std::to_string(loss.rank) + verb + loss.cause;
}

std::string recovery_line(const recovery_report& report, std::uint64_t step, int num_kept) {
  auto phase = [](const char* name, double seconds) {
    return std::string(name) + " " + with_milliseconds(seconds);
  };
  return describe_loss(report.loss) + " at step " + std::to_string(step) + "; next step done after " +
         with_milliseconds(report.total_s) + " s (" + phase("detect", report.detect_s) + ", " +
         phase("fence", report.fence_s) + ", " + phase("quiesce", report.quiesce_s) + ", " +
         phase("respawn", report.respawn_s) + ", " + phase("restore", report.restore_s) + ", " +
         phase("rebuild", report.rebuild_s) + ", " + phase("replay", report.replay_s) + "), " +
         std::to_string(num_kept) + (report.loss.rank < 0 ? " process" : " other process") +
         (num_kept == 1 ? "" : "es") + " kept running";
}

std::string recovery_json(const recovery_report& report, std::uint64_t step, int num_kept) {
  nlohmann::ordered_json object = {{"event", "recovery"},
                                   {"rank", report.loss.rank},
                                   {"seconds", report.total_s},
                                   {"cause", report.loss.cause},
                                   {"step", step},
                                   {"generation", report.generation},
                                   {"detect", report.detect_s},
                                   {"fence", report.fence_s},
                                   {"quiesce", report.quiesce_s},
                                   {"respawn", report.respawn_s},
                                   {"restore", report.restore_s},
                                   {"rebuild", report.rebuild_s},
                                   {"replay", report.replay_s},
                                   {"kept_running", num_kept}};
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace troupe
