#include "bench/peers/mpirun.hpp"

#include <unistd.h>

#include "bench/measure/report.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/cluster/tcp_socket.hpp"

namespace troupe::bench {

std::vector<nlohmann::json> run_by_mpirun(int num_processes, const std::vector<std::string>& command) {
  std::vector<std::string> whole{
      "mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(num_processes)};
  if (::geteuid() == 0) whole.emplace_back("--allow-run-as-root");
  if (this_machine().cores < num_processes) whole.insert(whole.end(), {"--mca", "mpi_yield_when_idle", "1"});
  whole.insert(whole.end(), command.begin(), command.end());
  auto agent_port = std::to_string(local_port(listen_on("127.0.0.1", 0)));
  auto finished = run_process(whole, {"MASTER_PORT=" + agent_port});
  check_exit_code(finished.exit_code, "mpirun of " + command.front(), finished.errors);
  return json_objects_in(finished.output);
}

}  // namespace troupe::bench
