#include "troupe/program.hpp"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <type_traits>

#include "troupe/config/command_line.hpp"
#include "troupe/config/environment/launch_environment.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/config/stop_signals.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"
#include "troupe/signals/signal_frame.hpp"
#include "troupe/usage/help_formatter.hpp"
#include "troupe/usage/output_problem.hpp"
#include "troupe/usage/parse_command_line.hpp"
#include "troupe/usage/usage_problem.hpp"
#include "troupe/usage/version.hpp"

namespace troupe {
namespace {

/// Prints the error that ended the program and returns its exit code.
class ending {
 public:
  ending(const char* program, std::shared_ptr<signals::signal_frame>& frame)
      : program_(program), frame_(frame) {}

  /// An error of this process: reports it to the job before the process ends.
  int failed(const std::string& message, failure_kind kind) const {
    int signal = frame_ ? frame_->stopped_by() : 0;
    if (signal) return 128 + signal;
    say(message);
    if (frame_) frame_->report_failure(message, kind);
    return kind == failure_kind::bad_input ? 2 : 1;
  }
  /// The end of the whole job: the launcher prints it once for all processes.
  int ended_with_job(const std::string& message, int exit_code) const {
    auto launch = read_launch_environment(process_environment());
    if (!launch || !launch->launched_by_troupe) say(message);
    return exit_code;
  }

 private:
  void say(const std::string& message) const {
    std::fprintf(stderr, "%s: %s\n", program_, message.c_str());
    std::fflush(stderr);
  }

  const char* program_;
  std::shared_ptr<signals::signal_frame>& frame_;
};

void require_fields(const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (!config::find_job_field(name))
      throw_invalid("used_options", "names of fields of job_options, such as 'epochs'", "'" + name + "'");
}

template <class Number>
std::string expected_number(std::errc status) {
  using limits = std::numeric_limits<Number>;
  bool is_outside = status == std::errc::result_out_of_range;
  if constexpr (std::is_integral_v<Number>)
    return is_outside ? "a whole number from " + std::to_string(limits::min()) + " to " +
                            std::to_string(limits::max())
                      : "a whole number";
  else
    return is_outside ? "a number that f64 can hold" : "a number";
}

/// A number as the job options read one: all of the text, decimal, and none that is out of range.
template <class Number>
void read_number(const std::string& option, const std::string& text, Number& value) {
  Number read{};
  const auto* end = text.data() + text.size();
  auto [stop, status] = std::from_chars(text.data(), end, read);
  if (status != std::errc() || stop != end)
    throw bad_input(option + ": expected " + expected_number<Number>(stop == end ? status : std::errc()) +
                    ", got '" + text + "'");
  value = read;
}

template <class Number>
std::string text_of(Number number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

void add_own(CLI::App& app, const program_option& option, std::string* value) {
  app.add_option(option.name, *value, option.description)->capture_default_str();
}

template <class Number>
void add_own(CLI::App& app, const program_option& option, Number* value) {
  auto store = [name = option.name, value](const std::string& text) { read_number(name, text, *value); };
  app.add_option_function<std::string>(option.name, store, option.description)
      ->type_name(std::is_integral_v<Number> ? "N" : "X")
      ->default_str(text_of(*value));
}

/// Those of the program and of its launcher: a scheduler may send a signal to all processes of a job.
config::stop_signals stop_signals_of(const job_options& options) {
  auto signals = config::stop_signals_from(options.stop_signals);
  if (auto launch = read_launch_environment(process_environment()))
    signals.merge(
        config::stop_signals_from(launch->stop_signals, "environment variable TROUPE_STOP_SIGNALS"));
  return signals;
}

/// An option that the program does not use is still known, so that it can be refused by name.
void hide_unused(CLI::App& app, const used_options& used) {
  for (const auto& field : config::job_fields())
    if (!used.contains(field.name)) app.get_option(field.option_name())->group("");
}

}  // namespace

used_options used_options::all() {
  used_options made;
  for (const auto& field : config::job_fields()) made.names_.emplace(field.name);
  return made;
}

used_options used_options::of_trainer() { return all().without({"data", "json"}); }

used_options used_options::of_world() {
  return only({"inspect", "inspect_token_file", "inspect_control", "inspect_audit_log", "backend",
               "network_interface", "network_sizes", "verify_frames", "log_level", "join_timeout",
               "suspect_after", "progress_timeout", "fault", "grace", "stop_signals"});
}

used_options used_options::only(const std::vector<std::string>& names) { return used_options().plus(names); }

used_options used_options::plus(const std::vector<std::string>& names) const {
  require_fields(names);
  auto made = *this;
  made.names_.insert(names.begin(), names.end());
  return made;
}

used_options used_options::without(const std::vector<std::string>& names) const {
  require_fields(names);
  auto made = *this;
  for (const auto& name : names) made.names_.erase(name);
  return made;
}

void used_options::refuse_others(const job_options& options, const std::string& user) const {
  for (const auto& field : config::job_fields())
    if (options.given.contains(std::string(field.name)) && !contains(field.name))
      throw bad_input(field.option_name() + " was given, but " + user +
                      " does not use it. Leave it out of the command line and of the YAML file");
}

int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body,
                const std::vector<program_option>& own_options, const used_options& used) {
  CLI::App app;
  std::shared_ptr<signals::signal_frame> frame;
  ending end(argv[0], frame);
  config::unblock_stop_signals();
  try {
    app.formatter(std::make_shared<usage::help_formatter>());
    app.name(std::filesystem::path(argv[0]).filename().string());
    app.set_version_flag("--version", "troupe " + usage::version_text());
    config::add_job_options(app, options);
    hide_unused(app, used);
    for (const auto& each : own_options)
      std::visit([&](auto* value) { add_own(app, each, value); }, each.value);
    usage::parse_command_line(app, argc, argv);
    used.refuse_others(options);
    check_options(options);
    frame = std::make_shared<signals::signal_frame>(signals::stop_limits{.grace = options.grace},
                                                    stop_signals_of(options));
    options.frame = frame;
    body(options);
    if (auto problem = usage::output_problem(); !problem.empty()) throw std::runtime_error(problem);
    return 0;
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    return end.failed(usage::usage_problem(app, problem), failure_kind::bad_input);
  } catch (const job_refused& problem) {
    return end.ended_with_job(problem.what(), 2);
  } catch (const bad_input& problem) {
    return end.failed(problem.what(), failure_kind::bad_input);
  } catch (const job_stopped& stopped) {
    return end.ended_with_job(stopped.what(), 128 + stopped.signal());
  } catch (const job_failed& failure) {
    return end.ended_with_job(failure.what(), failure.kind() == failure_kind::bad_input ? 2 : 1);
  } catch (const std::exception& failure) {
    return end.failed(failure.what(), failure_kind::error);
  } catch (...) {
    return end.failed("an exception that is no std::exception", failure_kind::error);
  }
}

}  // namespace troupe
