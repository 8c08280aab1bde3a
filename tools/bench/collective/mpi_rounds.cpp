// troupe_mpi_rounds OPERATION REPEATS repeat|fresh BYTES...: the operation with bare MPI calls, measured as
// troupe_group_rounds measures ours. A program of mpirun's; rank 0 prints an object for each size.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/collective/timed_calls.hpp"

namespace {

using namespace troupe::bench;

struct this_member {
  int rank = 0, size = 1;
};

this_member begin(int* argc, char*** argv) {
  this_member self;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &self.size);
  return self;
}

rank_sync sync_over_mpi() {
  return {[] { MPI_Barrier(MPI_COMM_WORLD); },
          [](double us) {
            double most = 0;
            MPI_Allreduce(&us, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            return most;
          }};
}

/// In memory that the processes of this host share until MPI_Finalize.
core_probe make_probe(this_member self) {
  MPI_Win window;
  void *own = nullptr, *next = nullptr;
  MPI_Aint bytes = core_probe::size_bytes;
  int unit = 1;
  MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  MPI_Win_shared_query(window, (self.rank + 1) % self.size, &bytes, &unit, &next);
  return {static_cast<std::byte*>(own), static_cast<const std::byte*>(next)};
}

void ping_pong(int rank, std::vector<float>& x) {
  for (int from = 0; from < 2; ++from) {
    auto count = static_cast<int>(x.size());
    if (rank == from) MPI_Send(x.data(), count, MPI_FLOAT, 1 - from, 0, MPI_COMM_WORLD);
    if (rank == 1 - from) MPI_Recv(x.data(), count, MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

void call(const std::string& operation, this_member self, std::vector<float>& x) {
  auto part = static_cast<int>(x.size()) / self.size;
  if (operation == "p2p")
    ping_pong(self.rank, x);
  else if (operation == "all_gather")
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, x.data(), part, MPI_FLOAT, MPI_COMM_WORLD);
  else if (operation == "reduce_scatter")
    MPI_Reduce_scatter_block(MPI_IN_PLACE, x.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Allreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

struct mpi_rounds_options {
  std::string operation;
  int repeats = 5;
  bool fresh = false;
};

/// The samples of one size, as JSON.
std::string measure(this_member self, core_probe& probe, const mpi_rounds_options& options, long size_bytes) {
  auto whole = 4L * self.size;
  std::vector<float> x(static_cast<std::size_t>((size_bytes + whole - 1) / whole * self.size)), from(x),
      to(x);
  auto sync = sync_over_mpi();
  auto timed = [&](std::vector<float>& written, const std::function<void()>& work) {
    timed_calls calls{calls_for(size_bytes)};
    if (options.fresh) calls.rewrite = [&written] { std::fill(written.begin(), written.end(), 1.0F); };
    return time_calls(sync, calls, work);
  };
  std::string samples;
  for (int k = 0; k < options.repeats; ++k) {
    auto probed = probe.measure(sync);
    auto copied = timed(from, [&] { std::memcpy(to.data(), from.data(), from.size() * sizeof(float)); });
    auto us = timed(x, [&] { call(options.operation, self, x); }) / (options.operation == "p2p" ? 2 : 1);
    char text[160];
    std::snprintf(text, sizeof text, R"(%s{"probe_us":%.9g,"memcpy_us":%.9g,"open_mpi_us":%.9g})",
                  samples.empty() ? "" : ",", probed, copied, us);
    samples += text;
  }
  return samples;
}

}  // namespace

int main(int argc, char** argv) {
  auto self = begin(&argc, &argv);
  auto probe = make_probe(self);
  mpi_rounds_options options{argv[1], std::atoi(argv[2]), std::string(argv[3]) == "fresh"};
  for (int i = 4; i < argc; ++i) {
    auto samples = measure(self, probe, options, std::atol(argv[i]));
    if (self.rank == 0) std::printf("{\"bytes\":%s,\"samples\":[%s]}\n", argv[i], samples.c_str());
  }
  MPI_Finalize();
}
