#include <algorithm>
#include <fstream>

#include "examine.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::doctor {
namespace {

std::string first_line(const std::filesystem::path& file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::vector<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

/// "Model: \t NVIDIA H100" -> "NVIDIA H100"
std::string model_of(const std::filesystem::path& gpu) {
  auto line = first_line(gpu / "information");
  auto colon = line.find(':');
  auto start = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
  return start == std::string::npos ? "unknown model" : line.substr(start);
}

/// Whether it is a display or compute device (PCI class 03) of NVIDIA (vendor 10de).
bool is_nvidia_gpu(const std::filesystem::path& device) {
  return first_line(device / "vendor") == "0x10de" && first_line(device / "class").starts_with("0x03");
}

/// Whether this program can use the GPUs that the driver knows, and if not, why.
finding usable_gpus() {
  auto number = num_cuda_devices();
  if (number > 0)
    return {"gpus", "usable GPUs", verdict::ok, "cuda:0 to cuda:" + std::to_string(number - 1), ""};
  try {
    require_device({device::kind::cuda, 0});
  } catch (const bad_input& why) {
    return {"gpus", "usable GPUs", verdict::warning, why.what(), ""};
  }
  return {"gpus", "usable GPUs", verdict::absent, "none", ""};
}

}  // namespace

findings examine_gpus(const std::filesystem::path& driver, const std::filesystem::path& devices) {
  findings found;
  for (const auto& gpu : folders_in(driver / "gpus"))
    found.push_back({"gpus", "NVIDIA GPU", verdict::ok, model_of(gpu), ""});
  if (!found.empty()) {
    found.push_back(usable_gpus());
    return found;
  }
  auto plugged_in = std::ranges::count_if(folders_in(devices), is_nvidia_gpu);
  if (plugged_in == 0) return {{"gpus", "NVIDIA GPU", verdict::absent, "none seen; the CPU computes", ""}};
  return {{"gpus", "NVIDIA driver", verdict::warning,
           std::to_string(plugged_in) + " GPU(s) plugged in, but no driver loaded",
           "apt-get install nvidia-driver (from Debian's non-free), then start again"}};
}

}  // namespace troupe::doctor
