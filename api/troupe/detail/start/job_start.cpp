#include "troupe/detail/start/job_start.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/detail/refused_call.hpp"
#include "troupe/detail/start/process_devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/folder_marker.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/posix/files/safe_file.hpp"
#include "troupe/process/process.hpp"
#include "troupe/snapshot/folder_layout.hpp"
#include "troupe/snapshot/manifest.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::detail {
namespace {

using namespace std::chrono_literals;

/// How long a replacement process waits for a key that exists if it was ever written.
constexpr auto answer_time = 1s;
/// How long rank 0 waits for the others to read why the job cannot start, and the others for rank 0 to end
/// the job.
constexpr auto farewell_time = 5s;
/// How long a process looks for what rank 0 has written to a folder: network file systems may show it late.
constexpr auto folder_patience = 10s;
constexpr auto between_looks = 100ms;
constexpr std::size_t longest_verdict = 4000;

/// The store keys of one Trainer's start.
class start_keys {
 public:
  explicit start_keys(std::uint32_t trainer) : prefix_("start/" + std::to_string(trainer) + "/") {}
  std::string verdict() const { return prefix_ + "verdict"; }
  /// Written before the verdict.
  std::string resumed() const { return prefix_ + "resumed"; }
  std::string marker() const { return prefix_ + "marker"; }
  std::string trained() const { return prefix_ + "trained"; }
  std::string end() const { return prefix_ + "end"; }
  std::string of(const char* item, int rank) const { return prefix_ + item + "/" + std::to_string(rank); }

 private:
  std::string prefix_;
};

void put(collective::store& keys, const std::string& key, std::string text) {
  if (text.size() > longest_verdict) text = text.substr(0, longest_verdict) + " ...";
  keys.put(key, std::as_bytes(std::span(text)));
}

std::optional<std::string> get(collective::store& keys, const std::string& key,
                               std::chrono::milliseconds timeout) {
  auto value = keys.get(key, timeout);
  if (!value) return {};
  return std::string(reinterpret_cast<const char*>(value->data()), value->size());
}

/// Waits without timeout; the store throws when the job ends.
std::string wait_for(collective::store& keys, const std::string& key) {
  for (;;)
    if (auto text = get(keys, key, 60s)) return *text;
}

std::string problem_of_folders(const job_options& options) {
  try {
    check_folders_writable(options);
    return {};
  } catch (const bad_input& problem) {
    return problem.what();
  }
}

/// Parts of snapshots that lie in folders of several hosts are never a whole one. Returns the name of this
/// host if its folder is another one than rank 0's, otherwise an empty text.
std::string host_without_marker(collective::store& keys, const start_keys& names,
                                const job_options& options) {
  if (options.snapshot_dir.empty()) return {};
  auto is_shared = shares_folder(keys, names.marker(), names.verdict(), options.snapshot_dir);
  return is_shared ? "" : files::host_name();
}

/// Rank 0's. Waits until all others have looked for its marker.
std::string problem_of_sharing(actors::process::process& self, const start_keys& keys,
                               const job_options& options) {
  std::string unseen;
  for (int rank = 1; rank < self.world_size(); ++rank)
    if (auto host = wait_for(self.keys(), keys.of("host without marker", rank)); !host.empty())
      unseen += (unseen.empty() ? "" : ", ") + std::string("rank ") + std::to_string(rank) + " on " + host;
  if (unseen.empty()) return {};
  return "--snapshot-dir: the folder " + options.snapshot_dir.string() +
         " is not the same one for all processes: what rank 0 wrote there on " + files::host_name() +
         " is not seen by " + unseen +
         ". Each process writes its part of a snapshot, so that none would ever be complete. Name a folder "
         "that all hosts share";
}

/// Collects the problems of all ranks.
std::string gather_problems(actors::process::process& self, const start_keys& keys,
                            const job_options& options) {
  auto all = problem_of_folders(options);
  std::optional<files::folder_marker> marker;
  if (all.empty() && !options.snapshot_dir.empty() && self.world_size() > 1) try {
      marker.emplace(options.snapshot_dir);
    } catch (const files::snapshot_error& problem) {
      all = std::string("--snapshot-dir: ") + problem.what();
    }
  put(self.keys(), keys.marker(), marker ? marker->name() : "");
  for (int rank = 1; rank < self.world_size(); ++rank) {
    auto problem = wait_for(self.keys(), keys.of("folders", rank));
    if (problem.empty() || all.find(problem) != std::string::npos) continue;
    all += (all.empty() ? "" : "; ") + std::string("rank ") + std::to_string(rank) + ": " + problem;
  }
  auto unshared = problem_of_sharing(self, keys, options);
  return all.empty() ? unshared : all;
}

/// Waits until the others have read the problem before the job ends, so that each of them throws bad_input
/// too.
[[noreturn]] void refuse(actors::process::process& self, const start_keys& keys, const std::string& why) {
  for (int rank = 1; rank < self.world_size(); ++rank) get(self.keys(), keys.of("seen", rank), farewell_time);
  self.fail(why, failure_kind::bad_input);
  throw bad_input(why);
}

void put_resumed_step(collective::store& keys, const start_keys& names,
                      const std::optional<snapshot::snapshot_manifest>& from) {
  put(keys, names.resumed(), from ? std::to_string(from->step) : "");
}

std::optional<std::uint64_t> resumed_step_of(collective::store& keys, const start_keys& names) {
  auto text = wait_for(keys, names.resumed());
  if (text.empty()) return {};
  return std::stoull(text);
}

void follow_verdict(actors::process::process& self, const start_keys& keys) {
  if (wait_for(self.keys(), keys.verdict()).empty()) return;
  put(self.keys(), keys.of("seen", self.rank()), "yes");
  try {
    get(self.keys(), keys.end(), farewell_time);
  } catch (const job_failed&) {
    // Rank 0 has ended the job, as expected.
  }
  throw bad_input("the job cannot start: rank 0 says why");
}

std::string named(const snapshot::unusable_snapshot& one) {
  return "step " + std::to_string(one.info.step) + " (" + one.info.folder.string() + "): " + one.reason;
}

/// A fresh job must not mix its snapshots with another one's, nor delete them.
void require_empty(snapshot::snapshot_store& store, const job_options& options, spdlog::logger& log) {
  for (const auto& info : store.list()) {
    if (info.state == snapshot::snapshot_state::incomplete) continue;
    if (!options.fresh_start)
      throw bad_input(
          "the folder " + options.snapshot_dir.string() + " holds snapshots (step " +
          std::to_string(info.step) +
          (info.manifest ? " of job " + info.manifest->job_id : ", damaged: " + info.problem) +
          "). Use --resume to continue from there, --fresh-start to start from scratch and keep them under "
          "other names, or another --snapshot-dir");
    log.warn("snapshot set aside for a fresh start step={} folder=\"{}\"", info.step, info.folder.string());
    store.set_aside(info);
  }
}

/// Refuses the state of another optimizer, and tells what else is another.
void compare_settings(const actors::job::job_definition& job, const snapshot::snapshot_manifest& found,
                      spdlog::logger& log) {
  auto snapshot = "the snapshot of step " + std::to_string(found.step * job.training.flush_every);
  if (!found.settings)
    return log.warn(
        "--resume: an earlier version of Troupe wrote {}, which does not say the optimizer: make sure that "
        "it is "
        "the same",
        snapshot);
  auto before = snapshot::optimizer_in(*found.settings), now = snapshot::optimizer_in(job.settings);
  if (before != now && !job.reset_optimizer)
    throw bad_input("--resume: " + snapshot + " has the optimizer's state of " + before +
                    ", and this job uses " + now + ", which cannot go on from it. Use " + before +
                    ", or --reset-optimizer to keep the weights and begin with a new state of " + now +
                    ", or another --snapshot-dir");
  if (job.reset_optimizer)
    log.warn("--resume: the state of {} begins anew (--reset-optimizer); {} has that of {}", now, snapshot,
             before);
  for (const auto& difference : snapshot::settings_differences(job.settings, *found.settings))
    log.warn("--resume: {}", difference);
}

std::optional<snapshot::snapshot_manifest> choose_from(snapshot::snapshot_store& store,
                                                       const job_options& options,
                                                       const actors::job::job_definition& job,
                                                       spdlog::logger& log) {
  auto folder = options.snapshot_dir.string();
  auto search = store.find();
  if (!search.found && !search.unusable.empty()) {
    std::string reasons;
    for (const auto& one : search.unusable) reasons += (reasons.empty() ? "" : "; ") + named(one);
    throw bad_input(
        "--resume: no snapshot in " + folder + " can be used, and nothing was changed there: " + reasons +
        ". Give another --snapshot-dir, or --fresh-start to start from scratch and keep these under other "
        "names");
  }
  if (!search.found) {
    log.warn("--resume: there is no snapshot in \"{}\", starting from the initial weights", folder);
    return {};
  }
  if (auto other = snapshot::identity_differences(job.identity, search.found->identity); !other.empty())
    throw bad_input("--resume: the snapshot of step " + std::to_string(search.found->step) + " in " + folder +
                    " belongs to another job: " + other +
                    ". Use the same options, or another --snapshot-dir");
  if (auto problem = numeric_class_problem(*search.found, numeric_class_of(job.places)); !problem.empty())
    throw bad_input("--resume: " + problem);
  compare_settings(job, *search.found, log);
  for (const auto& one : search.unusable) {
    if (one.info.state == snapshot::snapshot_state::incomplete) continue;
    log.warn("a snapshot that cannot be used is set aside, an older one is used: {}", named(one));
    store.set_aside(one.info);
  }
  return search.found;
}

std::string owner_of(const actors::process::process& self) {
  return "job " + self.job_id() + " (process " + std::to_string(::getpid()) + " on " + files::host_name() +
         ")";
}

/// No error, since groups share folders; but who may change one decides what a later job begins with.
void warn_of_others(const char* option, const std::filesystem::path& folder, const char* contents,
                    spdlog::logger& log) {
  if (folder.empty()) return;
  if (auto others = posix::others_who_may_change(folder); !others.empty())
    log.warn("{}: {} is not safe: {}, so that they can replace or remove {}. Choose a folder of your own",
             option, folder.string(), others, contents);
}

/// Throws bad_input if another job writes to the folder.
std::optional<files::folder_lock> lock_folder(const actors::process::process& self, files::lock_role role,
                                              const job_options& options, spdlog::logger& log) {
  if (options.snapshot_dir.empty()) return {};
  try {
    files::folder_lock lock(options.snapshot_dir, role, owner_of(self));
    if (!lock.is_held() && self.rank() == 0)
      log.warn(
          "--snapshot-dir: the file system of \"{}\" has no locks: make sure that no other job writes there",
          options.snapshot_dir.string());
    return lock;
  } catch (const files::snapshot_error& problem) {
    throw bad_input(std::string("--snapshot-dir: ") + problem.what());
  }
}

/// Of a process that comes after the first one of its job.
job_start join(actors::process::process& self, job_start start, const job_options& options,
               spdlog::logger& log) {
  start.lock =
      fail_job_on_exception(self, [&] { return lock_folder(self, files::lock_role::joins, options, log); });
  return start;
}

}  // namespace

snapshot::snapshot_access snapshot_access_of(const job_options& options) {
  if (options.snapshot_access == "group") return snapshot::snapshot_access::group;
  return options.snapshot_access == "umask" ? snapshot::snapshot_access::umask
                                            : snapshot::snapshot_access::owner;
}

std::optional<snapshot::snapshot_manifest> choose_snapshot(const job_options& options,
                                                           const actors::job::job_definition& job,
                                                           spdlog::logger& log) {
  if (options.snapshot_dir.empty()) return {};
  try {
    snapshot::snapshot_store_options made{options.snapshot_dir};
    made.access = snapshot_access_of(options);
    snapshot::snapshot_store store(made);
    if (options.resume) return choose_from(store, options, job, log);
    require_empty(store, options, log);
    return {};
  } catch (const files::snapshot_error& problem) {
    throw bad_input(std::string("--snapshot-dir: ") + problem.what());
  }
}

void check_folders_writable(const job_options& options) {
  auto option = "--snapshot-dir: ";
  try {
    if (!options.snapshot_dir.empty()) {
      snapshot::require_no_snapshot(options.snapshot_dir);
      snapshot::snapshot_store_options made{options.snapshot_dir};
      made.access = snapshot_access_of(options);
      snapshot::snapshot_store(made).prepare();
    }
    if (options.trace_dir.empty()) return;
    option = "--trace-dir: ";
    files::create_durably(options.trace_dir);
    auto probe = options.trace_dir / files::temporary_name("probe");
    files::write_durably(probe, std::span<const std::byte>());
    files::remove_durably(probe);
  } catch (const files::snapshot_error& problem) {
    throw bad_input(option + std::string(problem.what()));
  }
}

bool shares_folder(collective::store& keys, const std::string& marker_key, const std::string& verdict_key,
                   const std::filesystem::path& folder) {
  auto name = wait_for(keys, marker_key);
  if (name.empty()) return true;
  auto wait_for_next = [&]() -> std::optional<std::string> {
    if (get(keys, verdict_key, between_looks)) return {};
    return get(keys, marker_key, answer_time).value_or(name);
  };
  return files::sees_marker(folder, name, wait_for_next, folder_patience);
}

job_start agree_on_start(actors::process::process& self, std::uint32_t incarnation, std::uint32_t trainer,
                         const job_options& options, const actors::job::job_definition& job,
                         spdlog::logger& log) {
  auto& store = self.keys();
  start_keys keys(trainer);
  if (self.rank() != 0) {
    auto problem = problem_of_folders(options);
    put(store, keys.of("folders", self.rank()), problem);
    put(store, keys.of("host without marker", self.rank()),
        problem.empty() ? host_without_marker(store, keys, options) : "");
    follow_verdict(self, keys);
    job_start start;
    start.resumed_step = resumed_step_of(store, keys);
    return join(self, std::move(start), options, log);
  }
  job_start start;
  start.is_first = incarnation == 0 || !get(store, keys.verdict(), answer_time);
  start.trained_before = !start.is_first && get(store, keys.trained(), answer_time);
  if (!start.is_first) {
    start.resumed_step = resumed_step_of(store, keys);
    return join(self, std::move(start), options, log);
  }
  auto problem = gather_problems(self, keys, options);
  if (problem.empty()) {
    try {
      warn_of_others("--snapshot-dir", options.snapshot_dir, "the snapshots", log);
      warn_of_others("--trace-dir", options.trace_dir, "the traces", log);
      start.lock = lock_folder(self, files::lock_role::begins, options, log);
      start.resume_from = choose_snapshot(options, job, log);
    } catch (const bad_input& refused) {
      problem = refused.what();
    }
  }
  put_resumed_step(store, keys, start.resume_from);
  if (start.resume_from) start.resumed_step = start.resume_from->step;
  put(store, keys.verdict(), problem);
  if (!problem.empty()) refuse(self, keys, problem);
  return start;
}

job_options options_for_trainer(job_options options, std::uint32_t trainer) {
  if (trainer > 0 && !options.snapshot_dir.empty())
    options.snapshot_dir /= "trainer-" + std::to_string(trainer + 1);
  return options;
}

void record_safe_state(actors::process::process& self, std::uint32_t trainer) {
  put(self.keys(), start_keys(trainer).trained(), "yes");
}

}  // namespace troupe::detail
