#include "troupe/ops/isa_names.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

void require_isa_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> choices{"auto", "sse41", "avx2", "avx512_core",
                                                    "avx512_core_bf16"};
  if (std::ranges::find(choices, name) != choices.end()) return;
  std::string text;
  for (auto choice : choices) text += (text.empty() ? "" : ", ") + std::string(choice);
  throw bad_input("unknown instruction set \"" + std::string(name) + "\": use one of " + text);
}

}  // namespace troupe
