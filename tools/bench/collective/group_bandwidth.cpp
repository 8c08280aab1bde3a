// group_bandwidth --rank R --ranks N --folder F --interface I [--host H] [--path nearest|network]
//                 [--size-bytes S] [--calls N] [--call messages|<collective>] [--whole-inputs B] [--block B]
//
// One of several processes, on two hosts or one, that share a folder to meet in: moves bytes in a `ucx` group
// between hosts. Rank 0 prints MB/s (10^6 bytes) and microseconds a call: of `messages` from rank 0 to rank
// 1, one after the other; of a collective the bus bandwidth of nccl-tests. --path network has members of one
// host use the network too. tools/bench/between_hosts runs it beside ucx_perftest.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <numeric>

#include "bench/collective/group_calls.hpp"
#include "troupe/collective/diagnostics/profile.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace {

using namespace troupe;

struct options {
  int rank = 0, ranks = 2;
  std::string folder, interface = "lo", host, path = "nearest", call = "messages";
  std::int64_t size_bytes = 1 << 20;
  int calls = 500;
  collective::network_sizes sizes;
};

collective::collective_kind kind_of(const std::string& call) {
  for (auto kind : {collective::collective_kind::all_reduce, collective::collective_kind::reduce_scatter,
                    collective::collective_kind::all_gather, collective::collective_kind::broadcast,
                    collective::collective_kind::reduce, collective::collective_kind::barrier})
    if (to_string(kind) == call) return kind;
  return collective::collective_kind::send;
}

double seconds_of_call(communicator& group, const options& wanted) {
  auto x = group.allocate({wanted.size_bytes / 4 / group.size() * group.size()});
  auto call = bench::make_group_call(group, wanted.call, x);
  for (int i = 0; i < wanted.calls / 10 + 1; ++i) call();
  group.barrier().wait();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < wanted.calls; ++i) call();
  group.barrier().wait();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return seconds.count() / wanted.calls;
}

}  // namespace

int main(int count, char** arguments) {
  options wanted;
  CLI::App app("Bandwidth of a ucx group of processes over the network");
  app.add_option("--rank", wanted.rank)->required()->check(CLI::NonNegativeNumber);
  app.add_option("--ranks", wanted.ranks)->check(CLI::Range(2, 64));
  app.add_option("--folder", wanted.folder, "shared by both, empty at first")->required();
  app.add_option("--interface", wanted.interface);
  app.add_option("--host", wanted.host, "what this process calls its host");
  app.add_option("--path", wanted.path)->check(CLI::IsMember({"nearest", "network"}));
  app.add_option("--call", wanted.call)
      ->check(CLI::IsMember(
          {"messages", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "barrier"}));
  app.add_option("--size-bytes", wanted.size_bytes)->check(CLI::PositiveNumber);
  app.add_option("--calls", wanted.calls)->check(CLI::PositiveNumber);
  app.add_option("--whole-inputs", wanted.sizes.whole_inputs, "network_sizes::whole_inputs, bytes");
  app.add_option("--block", wanted.sizes.block, "network_sizes::block, bytes");
  CLI11_PARSE(app, count, arguments);
  try {
    collective::folder_store place(wanted.folder);
    auto path = wanted.path == "network" ? collective::group_path::network : collective::group_path::nearest;
    collective::ucx_group_resources resources(
        "bench", {.host = wanted.host, .interface = wanted.interface, .path = path, .sizes = wanted.sizes});
    group_description all{"all", std::vector<world_rank>(static_cast<std::size_t>(wanted.ranks)),
                          wanted.rank};
    std::iota(all.ranks.begin(), all.ranks.end(), 0);
    auto group = make_ucx_group(all, place, resources);
    auto seconds = seconds_of_call(*group, wanted);
    auto rate = static_cast<double>(wanted.size_bytes) / seconds / 1e6 *
                bus_factor(kind_of(wanted.call), wanted.ranks);
    if (wanted.rank == 0) std::printf("%.0f %.1f\n", rate, seconds * 1e6);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "group_bandwidth: %s\n", error.what());
    return 1;
  }
}
