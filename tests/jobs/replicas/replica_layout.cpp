#include "jobs/replicas/replica_layout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <utility>

namespace troupe::testing {

words job_of(const replica_layout& wanted, int num_steps) {
  words options{"--size",         "tiny",
                "--steps",        std::to_string(num_steps),
                "--batch",        wanted.replicas == 3 ? "12" : "16",
                "--microbatches", "2",
                "--replicas",     std::to_string(wanted.replicas)};
  auto add = [&options](const words& more) { options.insert(options.end(), more.begin(), more.end()); };
  if (wanted.exchange == "unclipped") {
    add({"--precision", "bf16"});
    return options;
  }
  add({"--clip-grad-norm", "0.5"});
  if (wanted.exchange == "top_k") {
    add({"--precision", "bf16", "--top-k-gradients", "0.05"});
  } else if (wanted.exchange == "power_sgd") {
    add({"--precision", "bf16", "--power-sgd-rank", "2"});
  } else {
    add({"--precision", "f16", "--loss-scale", "268435456"});
    wanted.exchange == "average" ? add({"--average-every", "3"}) : add({"--gradient-sync", wanted.exchange});
  }
  return options;
}

const job_bits& expected_bits(const replica_layout& wanted) {
  static std::map<std::pair<int, std::string>, job_bits> known;
  auto [found, is_new] = known.try_emplace({wanted.replicas, wanted.exchange});
  if (is_new) found->second = bits_of(run_local(job_of(wanted), example::gpt));
  return found->second;
}

job_outcome run_layout(const replica_layout& wanted, const words& more) {
  auto options = job_of(wanted);
  auto add = [&options](const words& added) { options.insert(options.end(), added.begin(), added.end()); };
  add({"--schedule", wanted.schedule, "--stages", std::to_string(wanted.stages), "--backend", wanted.backend,
       "--shard", wanted.shard});
  if (!wanted.killed_in.empty())
    add({"--snapshot-every", "2", "--fault",
         wanted.killed_in + "@rank=" + std::to_string(wanted.lost_rank) + ",step=7"});
  add(more);
  return wanted.processes == 1 ? run_local(options, example::gpt)
                               : run_launched(wanted.processes, options, {}, example::gpt);
}

void check_same_bits(const replica_layout& wanted) {
  INFO(wanted.replicas << " replicas, " << wanted.stages << " stages, " << wanted.processes << " processes, "
                       << wanted.schedule << ", exchange: " << wanted.exchange << " over " << wanted.backend
                       << ", shard: " << wanted.shard << ", killed: " << wanted.killed_in << " in rank "
                       << wanted.lost_rank);
  auto outcome = run_layout(wanted);
  INFO(outcome.process.errors);
  auto seen = bits_of(outcome), expected = expected_bits(wanted);
  CHECK(seen.weights_sha256 == expected.weights_sha256);
  if (wanted.killed_in.empty()) CHECK(seen.losses == expected.losses);
  CHECK(outcome.named("recovery").size() == (wanted.killed_in.empty() ? 0U : 1U));
}

}  // namespace troupe::testing
