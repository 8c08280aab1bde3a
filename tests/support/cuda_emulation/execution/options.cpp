#include "support/cuda_emulation/execution/options.hpp"

#include "troupe/config/environment/launch_environment.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::emulation {
namespace {

execution_options options_in(const environment_reader& read) {
  execution_options options;
  if (auto order = read("TROUPE_EMULATION_ORDER")) options.order = order_named(*order);
  auto early = read("TROUPE_EMULATION_EARLY_COPIES").value_or("0");
  if (early != "0" && early != "1")
    throw bad_input("TROUPE_EMULATION_EARLY_COPIES: expected 0 or 1, got \"" + early + "\"");
  if (early == "1") options.copies = copy_time::early;
  return options;
}

}  // namespace

thread_order order_named(std::string_view name) {
  if (name == "ascending") return thread_order::ascending;
  if (name == "descending") return thread_order::descending;
  if (name == "shuffled") return thread_order::shuffled;
  if (name == "warps") return thread_order::warp_by_warp;
  throw bad_input("TROUPE_EMULATION_ORDER: expected ascending, descending, shuffled or warps, got \"" +
                  std::string(name) + "\"");
}

const execution_options& process_options() {
  static const auto options = options_in(process_environment());
  return options;
}

}  // namespace troupe::emulation
