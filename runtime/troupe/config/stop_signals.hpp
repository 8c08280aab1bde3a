#pragma once
#include <chrono>
#include <set>
#include <string>
#include <string_view>

namespace troupe::config {

/// Signals that schedulers of clusters send some time before they end a job (`sbatch --signal=USR1@300`).
/// They stop a job only if --stop-signals names them: SIGUSR1, SIGUSR2 and SIGXCPU. Programs may use them for
/// other things.
using stop_signals = std::set<int>;

/// "USR1", "SIGUSR1,SIGXCPU"; empty: none. Throws bad_input that begins with `option`.
stop_signals stop_signals_from(std::string_view text, std::string_view option = "--stop-signals");
/// "USR1,XCPU"
std::string to_text(const stop_signals& signals);
/// Whether it is one of those that announce an end. It may come several times, or after another signal; only
/// SIGTERM, SIGINT and SIGHUP that come a second time kill a job.
bool is_early_warning(int signal);

/// Whether a stop signal that comes `since_first` after the first one repeats the request to stop, which
/// kills the job. One request is often two signals within milliseconds. For example, timeout(1) sends one to
/// its command and one to its process group, systemd and Slurm send one to each process, a shell and the
/// kernel a SIGHUP each.
bool is_repeated_stop(int signal, std::chrono::milliseconds since_first);

/// Unblocks, in this thread and those that it starts, `more` and SIGTERM, SIGINT and SIGHUP. A program
/// inherits the mask of blocked signals from whoever started it, and one that blocks SIGTERM would never
/// stop.
void unblock_stop_signals(const stop_signals& more = {});
/// Blocks them. Only a signalfd receives them then (signal_guard).
void block_stop_signals(const stop_signals& more = {});

}  // namespace troupe::config
