/// Linked behind the kernels' objects: shared_memory.cpp says why.
extern thread_local unsigned char troupe_shared_memory_end[16];
alignas(16) constinit thread_local unsigned char troupe_shared_memory_end[16];
