#pragma once
#include <filesystem>

#include "finding.hpp"

namespace troupe::doctor {

/// The libraries this program was built with, and what was loaded where a library can tell.
findings examine_libraries();
/// A library's finding: its version, or both versions and a warning if it was built with another one.
finding library(const std::string& name, const std::string& built_with, const std::string& loaded);

/// Processor, memory, shared memory (`shared_memory` is where it is mounted), limits.
findings examine_machine(const std::filesystem::path& shared_memory = "/dev/shm");
/// The limit on open files, judged.
finding open_files(std::uint64_t limit);
/// The limit on locked memory, judged; only InfiniBand and RoCE need more than there is by default.
finding locked_memory(std::uint64_t limit_bytes, bool has_infiniband);

/// Whether a process can reach another one over the loopback interface, and the transports that UCX sees.
findings examine_network();
/// UCX's resources, each "transport/device", judged. `interfaces` is where the system lists its networks.
findings transports(const std::vector<std::string>& resources,
                    const std::filesystem::path& interfaces = "/sys/class/net");

/// Graphics processors: `driver` is where NVIDIA's driver shows itself, `devices` where the PCI bus lists
/// what is plugged in.
findings examine_gpus(const std::filesystem::path& driver = "/proc/driver/nvidia",
                      const std::filesystem::path& devices = "/sys/bus/pci/devices");

/// Fashion-MNIST in `folder`: the headers of its files are read.
findings examine_data(const std::filesystem::path& folder);

}  // namespace troupe::doctor
