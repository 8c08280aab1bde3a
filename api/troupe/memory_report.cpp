#include "troupe/memory_report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

constexpr int event_version = 1;

using json = nlohmann::ordered_json;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

double in_mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string row(const device_memory_report& shown) {
  auto line =
      format("%6d %5d %-6s %9.2f %9.2f", shown.device, shown.rank, program::place_text(shown.place).c_str(),
             in_mib(shown.measured.current), in_mib(shown.measured.peak));
  line += shown.predicted ? format(" %9.2f", in_mib(shown.predicted->peak)) : format(" %9s", "-");
  line += shown.ratio ? format(" %6.3f", *shown.ratio) : format(" %6s", "-");
  for (auto bytes : shown.measured.peak_by_use) line += format(" %11.2f", in_mib(bytes));
  return line + "\n";
}

/// What a device on a GPU holds in the memory of the CPU, below its row.
std::string host_row(const device_memory_report& shown) {
  auto line = format("%6s %5s %-6s %9.2f %9.2f %9s %6s", "", "", "+ cpu", in_mib(shown.on_host.current),
                     in_mib(shown.on_host.peak), "", "");
  for (auto bytes : shown.on_host.peak_by_use) line += format(" %11.2f", in_mib(bytes));
  return line + "\n";
}

json by_use(const std::size_t (&bytes)[num_memory_uses]) {
  json object;
  for (std::size_t use = 0; use < num_memory_uses; ++use)
    object[std::string(to_string(static_cast<memory_use>(use)))] = bytes[use];
  return object;
}

json to_object(const account_statistics& held) {
  return {{"current_bytes", held.current},
          {"peak_bytes", held.peak},
          {"current_by_use", by_use(held.by_use)},
          {"peak_by_use", by_use(held.peak_by_use)}};
}

json to_object(const device_memory_report& shown) {
  json object = {{"device", shown.device}, {"rank", shown.rank}, {"place", program::place_text(shown.place)}};
  object.update(to_object(shown.measured));
  if (shown.place.type == device::kind::cuda) object["on_host"] = to_object(shown.on_host);
  if (shown.predicted)
    object["predicted"] = {
        {"parameters", shown.predicted->parameters},   {"gradients", shown.predicted->gradients},
        {"optimizer", shown.predicted->optimizer},     {"buffers", shown.predicted->buffers},
        {"activations", shown.predicted->activations}, {"messages", shown.predicted->messages},
        {"working", shown.predicted->working},         {"peak_bytes", shown.predicted->peak}};
  if (shown.ratio) object["ratio"] = *shown.ratio;
  return object;
}

}  // namespace

std::string memory_report::to_text() const {
  std::string text = "memory in MiB after " + std::to_string(steps) + " steps" +
                     (steps == 0 ? " (peaks are those of training after the first)" : "") +
                     "; the columns from working on are the most of each use\n";
  text +=
      format("%6s %5s %-6s %9s %9s %9s %6s", "device", "rank", "place", "now", "peak", "predicted", "ratio");
  for (std::size_t use = 0; use < num_memory_uses; ++use)
    text += format(" %11s", std::string(to_string(static_cast<memory_use>(use))).c_str());
  text += "\n";
  for (const auto& each : devices) {
    text += row(each);
    if (each.place.type == device::kind::cuda) text += host_row(each);
  }
  for (const auto& [rank, measured] : processes)
    text += format("process %d: resident %.1f, at most %.1f; tensors %.1f, at most %.1f; cached %.1f\n", rank,
                   in_mib(measured.resident), in_mib(measured.peak_resident), in_mib(measured.allocated),
                   in_mib(measured.peak), in_mib(measured.cached));
  text.pop_back();
  return text;
}

std::string memory_report::to_json() const {
  json event = {{"event", "memory"}, {"version", event_version}, {"steps", steps}};
  event["devices"] = json::array();
  for (const auto& each : devices) event["devices"].push_back(to_object(each));
  event["processes"] = json::array();
  for (const auto& [rank, measured] : processes)
    event["processes"].push_back({{"rank", rank},
                                  {"resident_bytes", measured.resident},
                                  {"peak_resident_bytes", measured.peak_resident},
                                  {"tensor_bytes", measured.allocated},
                                  {"peak_tensor_bytes", measured.peak},
                                  {"cached_bytes", measured.cached}});
  return event.dump();
}

}  // namespace troupe
