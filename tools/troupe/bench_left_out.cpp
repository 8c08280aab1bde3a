// In place of the benches, in a build with TROUPE_BENCH=OFF.
#include "commands.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

void add_bench_command(CLI::App& app, int&) {
  auto* bench = app.add_subcommand("bench", "Measure performance (not in this build)")->prefix_command();
  bench->callback([] {
    throw bad_input(
        "troupe bench: expected a build with benches, got one with TROUPE_BENCH=OFF (the demo's): build the "
        "release "
        "preset (cmake --preset release && cmake --build --preset release) and use build/release/bin/troupe");
  });
}

}  // namespace troupe
