// troupe_mpi_rounds OPERATION REPEATS BYTES...: the operation with bare MPI calls, measured as
// collective_rounds measures ours. A program of mpirun's; rank 0 prints an object for each size.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

double time_calls(long calls, const std::function<void()>& once) {
  once();
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (long i = 0; i < calls; ++i) once();
  double us = 1e6 * (MPI_Wtime() - begin) / static_cast<double>(calls), slowest = 0;
  MPI_Allreduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void ping(int rank, std::vector<float>& x) {
  for (int from = 0; from < 2; ++from) {
    auto count = static_cast<int>(x.size());
    if (rank == from) MPI_Send(x.data(), count, MPI_FLOAT, 1 - from, 0, MPI_COMM_WORLD);
    if (rank == 1 - from) MPI_Recv(x.data(), count, MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

void call(const std::string& operation, int rank, int part, std::vector<float>& x) {
  if (operation == "p2p")
    ping(rank, x);
  else if (operation == "all_gather")
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, x.data(), part, MPI_FLOAT, MPI_COMM_WORLD);
  else if (operation == "reduce_scatter")
    MPI_Reduce_scatter_block(MPI_IN_PLACE, x.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Allreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::string operation = argv[1];
  for (int i = 3; i < argc; ++i) {
    long bytes = std::atol(argv[i]), whole = 4L * size;
    long part = (bytes + whole - 1) / whole;
    std::vector<float> x(static_cast<std::size_t>(part * size));
    long calls = std::clamp((48L << 20) / bytes, 2L, 1000L);
    std::string times;
    for (int k = 0; k < std::atoi(argv[2]); ++k) {
      double us = time_calls(calls, [&] { call(operation, rank, static_cast<int>(part), x); });
      times += (k == 0 ? "" : ",") + std::to_string(operation == "p2p" ? us / 2 : us);
    }
    if (rank == 0) std::printf("{\"bytes\":%ld,\"us\":[%s]}\n", bytes, times.c_str());
  }
  MPI_Finalize();
}
