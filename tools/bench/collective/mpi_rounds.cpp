// troupe_mpi_rounds OPTIONS: the operation with bare MPI calls, measured as troupe_group_rounds measures
// ours. A program of mpirun's. OPTIONS is a JSON object, rounds_options.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "bench/collective/rounds.hpp"

#if defined(__SANITIZE_ADDRESS__)
/// Open MPI leaks, in part through libraries that it unloads, so that no suppression by name would do.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace {

using namespace troupe::bench;

using elements = std::vector<float>;

measuring_member this_member() {
  measuring_member self;
  MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &self.size);
  self.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  self.max = [](double us) {
    double most = 0;
    MPI_Allreduce(&us, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  };
  return self;
}

void ping_pong(int rank, elements& x) {
  for (int from = 0; from < 2; ++from) {
    auto count = static_cast<int>(x.size());
    if (rank == from) MPI_Send(x.data(), count, MPI_FLOAT, 1 - from, 0, MPI_COMM_WORLD);
    if (rank == 1 - from) MPI_Recv(x.data(), count, MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

void call(const std::string& operation, const measuring_member& self, elements& x) {
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

timed_call call_with(const char* name, const std::shared_ptr<elements>& x, std::function<void()> call) {
  return {name, std::move(call), [x] { std::fill(x->begin(), x->end(), 1.0F); }};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  auto self = this_member();
  rounds_options options = nlohmann::json::parse(argv[1]);
  measure_rounds(options, self, [&](std::int64_t size_bytes) -> calls_of_size {
    auto x = std::make_shared<elements>(num_elements_of(size_bytes, self.size));
    auto from = std::make_shared<elements>(*x), to = std::make_shared<elements>(*x);
    auto num_bytes = x->size() * sizeof(float);
    return {num_bytes,
            call_with("memcpy_us", from, [=] { std::memcpy(to->data(), from->data(), num_bytes); }),
            {call_with("open_mpi_us", x, [=, &options, &self] { call(options.operation, self, *x); })}};
  });
  MPI_Finalize();
}
