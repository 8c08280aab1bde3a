#pragma once
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <unordered_map>
#include <vector>

namespace troupe::cpu {

/// A oneDNN primitive whose operands lie in tensors, in plain formats, while it wants formats of its own:
/// those that differ are reordered on the way in and out, in scratch memory of the caching allocator. Made
/// once for each shape and thread and run again and again; no two threads may share one.
class bordered_primitive {
 public:
  explicit bordered_primitive(dnnl::primitive primitive);

  /// Operands are added in the order in which `run` takes them. `argument` is DNNL_ARG_...
  void add_input(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own);
  void add_output(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own);
  void add_scratchpad(const dnnl::memory::desc& own);

  /// Returns when the outputs are written. Inputs are not, though oneDNN takes them as void*.
  void run(std::span<void* const> elements);

 private:
  struct operand {
    dnnl::memory plain, own;
    bool is_input = true;
    dnnl::primitive reorder;  ///< empty if plain and own are one
    std::unordered_map<int, dnnl::memory> reorder_arguments;
  };

  void add(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own, bool is_input);
  void place(const dnnl::memory& of);

  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::vector<operand> operands_;
  /// Memory within one block of scratch, and its offset there.
  std::vector<std::pair<dnnl::memory, std::int64_t>> in_scratch_;
  std::int64_t scratch_bytes_ = 0;
};

/// The CPU as oneDNN's engine, of the calling thread.
const dnnl::engine& this_engine();

}  // namespace troupe::cpu
