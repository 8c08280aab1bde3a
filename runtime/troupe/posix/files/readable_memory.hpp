#pragma once

namespace troupe::posix {

/// Whether other processes of this user may read this one's memory (process_vm_readv): 0, or the errno with
/// which the kernel refuses it. It does for a process that is not dumpable, as one whose program its user may
/// execute and not read, and where a security module forbids tracing.
///
/// A process that may read its parent and may be traced itself can be read by its siblings. Where it may not
/// (the parent is another user's, or Yama lets only ancestors read), a new process tries it and ends: no
/// other call tells, and it takes milliseconds. Allows, as UCX does, that processes which are no ancestors
/// read this one where Yama asks for that.
int problem_of_reading_this_process();

}  // namespace troupe::posix
