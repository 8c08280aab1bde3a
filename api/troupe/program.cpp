#include "troupe/program.hpp"

#include <cstdio>
#include <filesystem>

#include "troupe/config/command_line.hpp"
#include "troupe/config/launch_environment.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/error/job_refused.hpp"
#include "troupe/error/job_stopped.hpp"
#include "troupe/signal_frame.hpp"
#include "troupe/usage/output_problem.hpp"
#include "troupe/usage/usage_problem.hpp"
#include "troupe/usage/version.hpp"

namespace troupe {
namespace {

/// Prints the error that ended the program and returns its exit code.
class ending {
 public:
  ending(const char* program, std::shared_ptr<signal_frame>& frame) : program_(program), frame_(frame) {}

  /// An error of this process: reports it to the job before the process ends.
  int failed(const std::string& message, int exit_code) const {
    int signal = frame_ ? frame_->stopped_by() : 0;
    if (signal) return 128 + signal;
    say(message);
    if (frame_) frame_->report_failure(message);
    return exit_code;
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
  std::shared_ptr<signal_frame>& frame_;
};

}  // namespace

int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body,
                const std::vector<program_option>& own_options) {
  CLI::App app;
  std::shared_ptr<signal_frame> frame;
  ending end(argv[0], frame);
  try {
    app.name(std::filesystem::path(argv[0]).filename().string());
    app.set_version_flag("--version", "troupe " + version_text());
    add_job_options(app, options);
    for (const auto& each : own_options)
      app.add_option(each.name, *each.value, each.description)->capture_default_str();
    app.parse(argc, argv);
    check_options(options);
    frame = std::make_shared<signal_frame>(stop_limits{.grace = options.grace});
    options.frame = frame;
    body(options);
    if (auto problem = output_problem(); !problem.empty()) throw std::runtime_error(problem);
    return 0;
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    return end.failed(usage_problem(app, problem), 2);
  } catch (const job_refused& problem) {
    return end.ended_with_job(problem.what(), 2);
  } catch (const bad_input& problem) {
    return end.failed(problem.what(), 2);
  } catch (const job_stopped& stopped) {
    return end.ended_with_job(stopped.what(), 128 + stopped.signal());
  } catch (const job_failed& failure) {
    return end.ended_with_job(failure.what(), 1);
  } catch (const std::exception& failure) {
    return end.failed(failure.what(), 1);
  } catch (...) {
    return end.failed("an exception that is no std::exception", 1);
  }
}

}  // namespace troupe
