#include "launcher.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "launch_session.hpp"
#include "troupe/cluster/agent.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/posix/files/working_directory.hpp"

namespace troupe {
namespace {

void check_drill(const drill& wanted, int num_processes) {
  if (wanted.rank >= num_processes)
    throw bad_input(std::string("a drill names rank ") + std::to_string(wanted.rank) +
                    ", expected a rank from 0 to " + std::to_string(num_processes - 1));
  if (wanted.step == 0)
    throw bad_input(
        "--drill " + std::to_string(wanted.rank) +
        "@0: expected the number of steps that are done when the rank is killed, at least 1, got 0. "
        "`--fault joined@rank=" +
        std::to_string(wanted.rank) + "` of the program strikes before the first step");
}

/// One that is made is for this user alone, since the output of programs may hold what others must not read.
void make_log_folder(const std::filesystem::path& wanted) {
  auto folder = posix::absolute_path(wanted);
  std::error_code problem;
  auto parent = (folder / "").parent_path().parent_path();
  std::filesystem::create_directories(parent, problem);
  // The umask may have taken this user's own permissions.
  if (!problem && (::mkdir(folder.c_str(), 0700) != 0 || ::chmod(folder.c_str(), 0700) != 0))
    problem = {errno, std::generic_category()};
  std::error_code unknown;
  if (problem && !std::filesystem::is_directory(folder, unknown))
    throw bad_input("cannot make the folder " + folder.string() + ": " + problem.message() +
                    ". Choose another --log-dir");
}

launch_options checked(launch_options options) {
  if (options.command.empty())
    throw bad_input("no program to launch. Example: troupe launch --nproc-per-node 4 ./train --epochs 5");
  if (options.num_processes < 1 || options.num_processes > 4096)
    throw bad_input(std::string("--nproc-per-node is ") + std::to_string(options.num_processes) +
                    ", expected 1 to 4096");
  if (options.max_restarts < 0)
    throw bad_input(std::string("--max-restarts is ") + std::to_string(options.max_restarts) +
                    ", expected 0 or more");
  for (auto [name, time] : {std::pair{"--restart-window", options.restart_window},
                            {"--grace", options.grace},
                            {"--join-timeout", options.join_timeout},
                            {"--suspect-after", options.suspect_after}})
    if (time.count() <= 0) throw bad_input(std::string(name) + " must be above 0, for example 20s");
  cluster::check_suspect_after(options.suspect_after);
  for (const auto& drill : options.drills) check_drill(drill, options.num_processes);
  if (!options.log_dir.empty()) make_log_folder(options.log_dir);
  return options;
}

}  // namespace

drill parse_drill(const std::string& text) {
  drill made;
  auto* last = text.data() + text.size();
  auto rank = std::from_chars(text.data(), last, made.rank);
  bool good = rank.ec == std::errc() && rank.ptr != last && *rank.ptr == '@' && made.rank >= 0;
  if (good) {
    auto step = std::from_chars(rank.ptr + 1, last, made.step);
    good = step.ec == std::errc() && step.ptr == last;
  }
  if (!good) throw bad_input("expected a drill RANK@STEP, for example 2@100, got '" + text + "'");
  return made;
}

launcher::launcher(launch_options options, launch_callbacks callbacks)
    : session_(std::make_unique<session>(checked(std::move(options)), std::move(callbacks))) {}

launcher::~launcher() = default;

int launcher::run() { return session_->run(); }

int launcher::stopped_by() const { return session_->stopped_by(); }

void launcher::kill(int rank) { session_->kill(rank); }

}  // namespace troupe
