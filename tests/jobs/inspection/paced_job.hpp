#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jobs/inspection/inspected_job.hpp"
#include "support/http_client.hpp"
#include "support/temp_folder.hpp"

namespace troupe::testing {

/// A job of paced_worker with --inspect that is asked over HTTP: it trains slowly until `finish`, or until
/// its steps are done (320, or as the options say).
class paced_job {
 public:
  explicit paced_job(int num_processes, const std::vector<std::string>& options = {});

  std::uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }
  /// The line of a request that lets it in.
  std::string bearer() const { return "Authorization: Bearer " + token_; }
  http_answer get(const std::string& target) const { return ask_http(port_, "GET", target, {bearer()}); }
  nlohmann::json read(const std::string& name) const;
  /// Asks the inspector of the process that has taken rank 0 over from now on.
  void follow_rank_0();
  /// The stream of its events, to be read until the next step, say.
  client_socket events() const;

  /// Lets it train to its end, and returns its weights_sha256. Fails the test if it does not end well.
  std::string finish();
  inspected_job& inspected() { return job_; }

 private:
  void set_address(const std::string& url);

  temp_folder folder_;
  inspected_job job_;
  std::uint16_t port_ = 0;
  std::string token_;
};

/// Options for more steps than a job does before its test lets it finish.
extern const std::vector<std::string> many_steps;
/// Options of such a job that takes commands. It has a log, which is its audit log unless `more` names a
/// file: without one no command is taken.
std::vector<std::string> with_commands(std::vector<std::string> more = {});

/// The weights_sha256 of the same job, in one process that nobody watches.
std::string untouched_weights(const std::vector<std::string>& options = {});

}  // namespace troupe::testing
