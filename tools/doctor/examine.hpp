#pragma once
#include <filesystem>

#include "finding.hpp"

namespace troupe::doctor {

/// The libraries this program was built with, and the loaded versions if a library reports them.
findings examine_libraries();
/// A library's finding: its version, or both versions and a warning if it was built with another one.
finding library(const std::string& name, const std::string& built_with, const std::string& loaded);

/// Processor, memory, shared memory (`shared_memory` is where it is mounted), limits.
findings examine_machine(const std::filesystem::path& shared_memory = "/dev/shm");
/// Whether the limit on open files is high enough.
finding open_files(std::uint64_t limit);
/// Whether the limit on locked memory is high enough; only InfiniBand and RoCE need more than the default.
finding locked_memory(std::uint64_t limit_bytes, bool has_infiniband);

/// Whether a process can reach another one over the loopback interface, and the transports that UCX sees.
findings examine_network();
/// Whether UCX's resources, each "transport/device", suffice. `interfaces`: the folder in which the system
/// lists its networks.
findings transports(const std::vector<std::string>& resources,
                    const std::filesystem::path& interfaces = "/sys/class/net");

/// Graphics processors. `driver`: the folder of NVIDIA's driver; `devices`: the folder in which the PCI bus
/// lists its devices.
findings examine_gpus(const std::filesystem::path& driver = "/proc/driver/nvidia",
                      const std::filesystem::path& devices = "/sys/bus/pci/devices");

/// Fashion-MNIST in `folder`. Reads the headers of its files.
findings examine_data(const std::filesystem::path& folder);

}  // namespace troupe::doctor
