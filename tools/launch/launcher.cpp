#include "launcher.hpp"

#include <charconv>

#include "launch_session.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

drill parse_drill(const std::string& text) {
  drill made;
  auto* last = text.data() + text.size();
  auto rank = std::from_chars(text.data(), last, made.rank);
  bool good = rank.ec == std::errc() && rank.ptr != last && *rank.ptr == '@' && made.rank >= 0;
  if (good) {
    auto step = std::from_chars(rank.ptr + 1, last, made.step);
    good = step.ec == std::errc() && step.ptr == last;
  }
  if (!good) throw bad_input("the drill '" + text + "' is not RANK@STEP, for example 2@100");
  return made;
}

launcher::launcher(launch_options options, launch_callbacks callbacks)
    : session_(std::make_unique<session>(std::move(options), std::move(callbacks))) {}

launcher::~launcher() = default;

int launcher::run() { return session_->run(); }

void launcher::kill(int rank) { session_->kill(rank); }

}  // namespace troupe
