#pragma once
#include <string>
#include <utility>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::testing {

/// A membership that only records its calls. For one thread.
class recording_membership : public cluster::membership {
 public:
  void join(const cluster::member& self) override { joined.push_back(self); }
  void still_computing(std::uint64_t generation) override { computing.push_back(generation); }
  void quiesced(std::uint64_t generation, const transport::process_address& address) override {
    acknowledged.emplace_back(generation, address);
  }
  void request_generation(std::uint64_t current, const std::string& cause) override {
    requests.emplace_back(current, cause);
  }
  void suspect(int rank, const std::string& cause) override { suspects.emplace_back(rank, cause); }
  void report(const cluster::job_progress& progress) override { progress_reports.push_back(progress); }
  void report(std::uint64_t generation, cluster::recovery_phase phase) override {
    phases.emplace_back(generation, phase);
  }
  void fail_job(const std::string& cause, failure_kind) override { failures.push_back(cause); }
  void request_stop(int signal, cluster::stop_scope) override { stop_requests.push_back(signal); }
  void stopped(const std::string& what) override { stops.push_back(what); }
  void failing(const std::string& what, failure_kind) override { own_failures.push_back(what); }
  void leave() override { ++num_left; }
  collective::store& keys() override { return left_behind; }

  std::vector<cluster::member> joined;
  std::vector<std::pair<std::uint64_t, transport::process_address>> acknowledged;
  std::vector<std::uint64_t> computing;
  std::vector<std::pair<std::uint64_t, std::string>> requests;
  std::vector<std::pair<int, std::string>> suspects;
  std::vector<cluster::job_progress> progress_reports;
  std::vector<std::pair<std::uint64_t, cluster::recovery_phase>> phases;
  std::vector<std::string> failures, stops, own_failures;
  std::vector<int> stop_requests;
  int num_left = 0;
  collective::memory_store left_behind;
};

}  // namespace troupe::testing
