#include "troupe/ops/numeric_class.hpp"

#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "troupe/ops/isa_names.hpp"

namespace troupe {
namespace {

constexpr std::array<std::pair<dnnl_cpu_isa_t, std::string_view>, 8> isas{{
    {dnnl_cpu_isa_sse41, "sse41"},
    {dnnl_cpu_isa_avx, "avx"},
    {dnnl_cpu_isa_avx2, "avx2"},
    {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
    {dnnl_cpu_isa_avx512_core, "avx512_core"},
    {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
    {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
    {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
}};

dnnl_cpu_isa_t isa_named(std::string_view name) {
  for (const auto& [isa, known] : isas)
    if (known == name) return isa;
  throw std::logic_error("expected a known oneDNN instruction set, got " + std::string(name));
}

/// Instruction sets are bit masks.
bool is_within(dnnl_cpu_isa_t isa, dnnl_cpu_isa_t cap) { return (isa & cap) == static_cast<int>(isa); }

std::string name_of(dnnl_cpu_isa_t isa) {
  for (const auto& [known, name] : isas)
    if (known == isa) return std::string(name);
  return "isa" + std::to_string(static_cast<int>(isa));
}

}  // namespace

std::string numeric_class() {
  const auto* version = dnnl_version();
  return "onednn-" + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + "-" + name_of(dnnl_get_effective_cpu_isa());
}

void cap_isa(const std::string& name) {
  require_isa_name(name);
  if (name == "auto") return;
  auto cap = isa_named(name);
  if (dnnl_set_max_cpu_isa(cap) == dnnl_success || is_within(dnnl_get_effective_cpu_isa(), cap)) return;
  throw std::logic_error("[cap_isa] expected a call before the first operation, got " + name + " while " +
                         name_of(dnnl_get_effective_cpu_isa()) + " is in use");
}

}  // namespace troupe
