#include "recovery_text.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace troupe {
namespace {

std::string with_milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

/// "a", "a and b", "a, b and c"
std::string enumerated(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  return text;
}

/// The end of all these ranks, which has one cause.
std::string describe(const std::vector<int>& ranks, const std::string& cause) {
  if (ranks.front() < 0) return "an actor failed (" + cause + ")";
  std::vector<std::string> names;
  for (int rank : ranks) names.push_back(std::to_string(rank));
  bool is_one = ranks.size() == 1;
  bool was_ended = cause.starts_with("killed") || cause.starts_with("ended by");
  auto verb = !was_ended ? " ended with " : is_one ? " was " : " were ";
  return (is_one ? "rank " : "ranks ") + enumerated(names) + verb + cause;
}

}  // namespace

std::string describe_loss(const cluster::member_loss& loss) { return describe({loss.rank}, loss.cause); }

std::string describe_losses(const std::vector<cluster::member_loss>& losses) {
  std::vector<std::string> sentences;
  std::vector<bool> is_told(losses.size());
  for (std::size_t first = 0; first < losses.size(); ++first) {
    if (is_told[first]) continue;
    std::vector<int> ranks;
    for (auto i = first; i < losses.size(); ++i) {
      if (losses[i].cause != losses[first].cause || (i > first && losses[first].rank < 0)) continue;
      is_told[i] = true;
      ranks.push_back(losses[i].rank);
    }
    sentences.push_back(describe(ranks, losses[first].cause));
  }
  return enumerated(sentences);
}

std::string recovery_line(const cluster::recovery_report& report,
                          const std::vector<cluster::member_loss>& losses, std::uint64_t step, int num_kept,
                          bool did_step) {
  auto phase = [](const char* name, double seconds) {
    return std::string(name) + " " + with_milliseconds(seconds);
  };
  bool was_lost =
      std::ranges::any_of(losses, [](const cluster::member_loss& loss) { return loss.rank >= 0; });
  return describe_losses(losses) + " at step " + std::to_string(step) +
         (did_step ? "; next step done after " : "; restored, with no step done since, after ") +
         with_milliseconds(report.total_s) + " s (" + phase("detect", report.detect_s) + ", " +
         phase("fence", report.fence_s) + ", " + phase("quiesce", report.quiesce_s) + ", " +
         phase("respawn", report.respawn_s) + ", " + phase("restore", report.restore_s) + ", " +
         phase("rebuild", report.rebuild_s) + ", " + phase("replay", report.replay_s) + "), " +
         std::to_string(num_kept) + (was_lost ? " other process" : " process") + (num_kept == 1 ? "" : "es") +
         " kept running";
}

std::string recovery_json(const cluster::recovery_report& report,
                          const std::vector<cluster::member_loss>& losses, std::uint64_t step, int num_kept) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& loss : losses)
    all.push_back(nlohmann::ordered_json{{"rank", loss.rank}, {"cause", loss.cause}});
  nlohmann::ordered_json object = {{"event", "recovery"},
                                   {"rank", report.loss.rank},
                                   {"seconds", report.total_s},
                                   {"cause", report.loss.cause},
                                   {"losses", std::move(all)},
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
