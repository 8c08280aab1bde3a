// group_bandwidth --rank R --folder F --interface I [--size-bytes S] [--calls N] [--call messages|all_reduce]
//
// One of two processes, on two hosts or one, that share a folder to meet in: moves bytes over a `ucx` group's
// network path. Rank 0 prints MB/s (10^6 bytes): of `messages` from rank 0 to rank 1, one after the other; of
// `all_reduce` the bus bandwidth of nccl-tests, which for two members is S over the time of a call.
// tools/bench/between_hosts runs it beside ucx_perftest.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "troupe/collective/folder_store.hpp"
#include "troupe/collective/ucx/ucx_group.hpp"

namespace {

using namespace troupe;

struct options {
  int rank = 0;
  std::string folder, interface = "lo", call = "messages";
  std::int64_t size_bytes = 1 << 20;
  int calls = 500;
};

void make_call(communicator& group, const options& wanted, tensor& x) {
  constexpr call_options here{.progress = progress_by::waiter};
  if (wanted.call == "all_reduce")
    group.all_reduce(x, reduce_op::sum, here).wait();
  else if (group.rank() == 0)
    group.send(x, 1, here).wait();
  else
    group.receive(x, 0, here).wait();
}

double megabytes_per_second(communicator& group, const options& wanted) {
  auto x = tensor::zeros({wanted.size_bytes / 4});
  for (int i = 0; i < wanted.calls / 10 + 1; ++i) make_call(group, wanted, x);
  group.barrier().wait();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < wanted.calls; ++i) make_call(group, wanted, x);
  group.barrier().wait();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(wanted.size_bytes) * wanted.calls / seconds.count() / 1e6;
}

}  // namespace

int main(int count, char** arguments) {
  options wanted;
  CLI::App app("Bandwidth of a ucx group of two processes over the network");
  app.add_option("--rank", wanted.rank)->required()->check(CLI::Range(0, 1));
  app.add_option("--folder", wanted.folder, "shared by both, empty at first")->required();
  app.add_option("--interface", wanted.interface);
  app.add_option("--call", wanted.call)->check(CLI::IsMember({"messages", "all_reduce"}));
  app.add_option("--size-bytes", wanted.size_bytes)->check(CLI::PositiveNumber);
  app.add_option("--calls", wanted.calls)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, count, arguments);
  try {
    folder_store place(wanted.folder);
    ucx_group_resources resources("bench", {.interface = wanted.interface, .path = group_path::network});
    auto group = make_ucx_group({"all", {0, 1}, wanted.rank}, place, resources);
    auto rate = megabytes_per_second(*group, wanted);
    if (wanted.rank == 0) std::printf("%.0f\n", rate);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "group_bandwidth: %s\n", error.what());
    return 1;
  }
}
