/// Linked before the kernels' objects: shared_memory.cpp says why.
extern thread_local unsigned char troupe_shared_memory_begin[16];
alignas(16) constinit thread_local unsigned char troupe_shared_memory_begin[16];
