#include <libdeflate.h>
#include <sodium.h>
#include <spdlog/version.h>
#include <ucp/api/ucp.h>
#include <uct/api/version.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <cereal/version.hpp>
#include <nlohmann/json.hpp>

#include "examine.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::doctor {
namespace {

std::string version(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

finding headers_only(const std::string& name, const std::string& built_with) {
  return {"libraries", name, verdict::ok, built_with, ""};
}

finding cuda() {
  auto version = cuda_version();
  if (!version.empty()) return {"libraries", "CUDA", verdict::ok, version, ""};
  return {"libraries", "CUDA", verdict::absent, "built without: GPUs are left out",
          "install the CUDA Toolkit (nvcc on the PATH), then cmake --preset cuda"};
}

}  // namespace

finding library(const std::string& name, const std::string& built_with, const std::string& loaded) {
  if (built_with == loaded) return {"libraries", name, verdict::ok, loaded, ""};
  return {"libraries", name, verdict::warning, loaded + " is loaded, but built with " + built_with,
          "build again: cmake --build --preset release --clean-first"};
}

findings examine_libraries() {
  findings found;
  found.push_back(headers_only("CAF", TROUPE_CAF_VERSION));
  found.push_back(library("UCX", UCT_VERNO_STRING, ucp_get_version_string()));
  found.push_back(cuda());
  found.push_back(library("libsodium", SODIUM_VERSION_STRING, sodium_version_string()));
  found.push_back(library("zlib", ZLIB_VERSION, zlibVersion()));
  found.push_back(headers_only("libdeflate", LIBDEFLATE_VERSION_STRING));
  found.push_back(headers_only("spdlog", version(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)));
  found.push_back(headers_only("yaml-cpp", TROUPE_YAML_VERSION));
  found.push_back(
      headers_only("cereal", version(CEREAL_VERSION_MAJOR, CEREAL_VERSION_MINOR, CEREAL_VERSION_PATCH)));
  found.push_back(headers_only("CLI11", CLI11_VERSION));
  found.push_back(headers_only(
      "nlohmann-json",
      version(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)));
  found.push_back({"libraries", "numeric class", verdict::ok, numeric_class(), ""});
  return found;
}

}  // namespace troupe::doctor
