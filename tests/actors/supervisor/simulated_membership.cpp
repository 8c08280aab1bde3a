#include "simulated_process.hpp"

namespace troupe::testing {

void simulated_membership::join(const cluster::member& self) {
  job_.carry({self_.id, 0, 0}, [this, self] {
    if (job_.agent_.is_done()) {  // it is refused, unless it was killed meanwhile
      if (self_.alive) job_.end(self_, false);
      return;
    }
    if (auto reason = job_.agent_.refusal(self.rank, self.incarnation))
      job_.problems_.push_back("refused: " + *reason);
    else
      job_.carry_out(job_.agent_.joined(self, job_.now_));
  });
}

void simulated_membership::still_computing(std::uint64_t generation) {
  job_.tell_agent(
      self_, [this, generation] { return job_.agent_.still_computing(self_.rank, generation, job_.now_); });
}

void simulated_membership::quiesced(std::uint64_t generation, const transport::process_address& address) {
  job_.tell_agent(self_, [this, generation, address] {
    return job_.agent_.quiesced(self_.rank, generation, address, job_.now_);
  });
}

void simulated_membership::request_generation(std::uint64_t current, const std::string& cause) {
  job_.tell_agent(
      self_, [this, current, cause] { return job_.agent_.generation_requested(current, cause, job_.now_); });
}

void simulated_membership::suspect(int rank, const std::string& cause) {
  job_.tell_agent(self_, [this, rank, cause] {
    auto* suspected = job_.present(rank);
    return suspected ? job_.agent_.suspected(rank, suspected->incarnation, cause, job_.now_)
                     : cluster::membership_outputs{};
  });
}

void simulated_membership::report(std::uint64_t generation, cluster::recovery_phase phase) {
  job_.tell_agent(
      self_, [this, generation, phase] { return job_.agent_.phase_reached(generation, phase, job_.now_); });
}

void simulated_membership::fail_job(const std::string& cause, failure_kind kind) {
  job_.tell_agent(self_, [this, cause, kind] { return job_.agent_.failed(cause, kind); });
}

void simulated_membership::request_stop(int signal, cluster::stop_scope scope) {
  job_.tell_agent(self_, [this, signal, scope] {
    return scope == cluster::stop_scope::job ? job_.agent_.stop(signal)
                                             : job_.agent_.stop_asked(self_.rank, signal);
  });
}

void simulated_membership::stopped(const std::string& what) {
  job_.tell_agent(self_, [this, what] { return job_.agent_.stopped(what); });
}

void simulated_membership::leave() {
  job_.tell_agent(self_, [this] { return job_.agent_.left(self_.rank, job_.now_); });
}

/// The scheduler of the next generation assigns devices as if they had been with these members before.
void simulated_job::draw_homes() {
  if (!options_.moves_devices) return;
  auto draw = [&](int num_devices) {
    std::vector<world_rank> members(static_cast<std::size_t>(num_devices));
    for (auto& member : members)
      member = static_cast<int>(random_() % static_cast<unsigned>(options_.world_size));
    return mesh::hosting(members);
  };
  for (auto& job : jobs_) job->home = draw(job->placed.num_devices());
  for (auto& process : processes_)
    if (process->hosted->generation > 0) process->hosted->hosts = draw(process->hosted->hosts.num_devices());
}

}  // namespace troupe::testing
