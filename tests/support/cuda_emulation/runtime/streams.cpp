// Streams, events, and when queued work runs.
#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "machine.hpp"
#include "stream_work.hpp"

namespace troupe::emulation {

CUstream_st& checked(cudaStream_t stream) {
  if (!stream) refuse("expected a stream of its own, got the default stream, which waits for all others");
  if (stream->is_destroyed) refuse("expected a stream, got one that was destroyed");
  return *stream;
}

CUevent_st& checked(cudaEvent_t event) {
  if (!event) refuse("expected an event, got null");
  if (event->is_destroyed) refuse("expected an event, got one that was destroyed");
  return *event;
}

cudaError_t add_work(CUstream_st& stream, attempt work) {
  if (stream.is_capture_invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture) {
    stream.capture->work.push_back(std::move(work));
    return cudaSuccess;
  }
  stream.queue.push_back(std::move(work));
  ++stream.num_queued;
  return cudaSuccess;
}

namespace {

/// One attempt at the stream's first operation. False if nothing was done.
bool step(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream) {
  if (stream.is_running || stream.queue.empty()) return false;
  stream.is_running = true;
  auto& first = stream.queue.front();
  lock.unlock();
  auto is_done = [&]() noexcept { return first(); }();  // no caller could handle an exception of a GPU's work
  lock.lock();
  stream.is_running = false;
  if (!is_done) return false;
  stream.queue.pop_front();
  ++stream.num_done;
  return true;
}

/// One step of any other stream, for the time in which the stream `but` cannot continue.
bool step_any(std::unique_lock<std::recursive_mutex>& lock, const CUstream_st& but) {
  auto& all = the_machine();
  auto has_stepped = false;
  for (std::size_t i = 0; i < all.streams.size(); ++i)  // others may make streams meanwhile
    if (auto* each = all.streams[i].get(); each != &but) has_stepped |= step(lock, *each);
  return has_stepped;
}

/// A wait for an event in a stream: the other stream runs when this operation is attempted.
attempt wait_for(CUstream_st* other, std::uint64_t ticket) {
  return [other, ticket] {
    std::unique_lock lock(the_machine().mutex);
    while (other->num_done < ticket)
      if (!step(lock, *other)) return false;
    return true;
  };
}

cudaError_t invalidate_capture(CUstream_st& stream) {
  stream.is_capture_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

}  // namespace

void advance(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream) {
  if (step(lock, stream) || step_any(lock, stream)) return;
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

void run_ahead() {
  auto& all = the_machine();
  if (all.order == stream_order::late) return;
  std::unique_lock lock(all.mutex);
  auto step_drawn = [&] { return step(lock, *all.streams[all.draws() % all.streams.size()]); };
  auto step_each = [&] {
    bool has_stepped = false;
    for (std::size_t i = 0; i < all.streams.size(); ++i) has_stepped |= step(lock, *all.streams[i]);
    return has_stepped;
  };
  if (all.streams.empty()) return;
  if (all.order == stream_order::early) {
    while (step_each()) {
    }
    return;
  }
  constexpr int most_steps = 8;
  for (auto left = all.draws() % (2 * most_steps); left > most_steps; --left) step_drawn();
}

void run_until(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream, std::uint64_t ticket) {
  while (stream.num_done < ticket) advance(lock, stream);
}

void run_all(int gpu) {
  auto& all = the_machine();
  std::unique_lock lock(all.mutex);
  for (std::size_t i = 0; i < all.streams.size(); ++i)
    if (auto& each = *all.streams[i]; each.gpu == gpu) run_until(lock, each, each.num_queued);
}

int gpu_of(cudaStream_t stream) { return checked(stream).gpu; }

void enqueue(cudaStream_t stream, std::function<void()> work) {
  enqueue_attempts(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

void enqueue_attempts(cudaStream_t stream, std::function<bool()> work) {
  std::unique_lock lock(the_machine().mutex);
  auto& into = checked(stream);
  if (into.gpu != current_gpu())
    refuse("expected a launch in a stream of the thread's current GPU " + std::to_string(current_gpu()) +
           ", got one in a stream of GPU " + std::to_string(into.gpu));
  add_work(into, std::move(work));  // into an invalid capture: cudaStreamEndCapture reports it
  lock.unlock();
  run_ahead();
}

}  // namespace troupe::emulation

using namespace troupe::emulation;  // the definitions below are the API's own, in no namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call(__func__, [=] {
    if (flags != cudaStreamNonBlocking)
      refuse("expected cudaStreamNonBlocking, got a stream that waits for the default stream");
    auto& all = the_machine();
    std::lock_guard lock(all.mutex);
    all.streams.push_back(std::make_unique<CUstream_st>());
    *stream = all.streams.back().get();
    (*stream)->gpu = current_gpu();
    return cudaSuccess;
  });
}

// Queued work still runs when something waits for it.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& gone = checked(stream);
    if (gone.capture) refuse("expected a stream that does not capture to be destroyed, got one that does");
    gone.is_destroyed = true;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call(__func__, [=] {
    std::unique_lock lock(the_machine().mutex);
    auto& awaited = checked(stream);
    if (awaited.capture) return invalidate_capture(awaited);
    run_until(lock, awaited, awaited.num_queued);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call(__func__, [=] {
    run_all(current_gpu());
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call(__func__, [=] {
    auto& all = the_machine();
    std::lock_guard lock(all.mutex);
    all.events.push_back(std::make_unique<CUevent_st>());
    *event = all.events.back().get();
    (*event)->gpu = current_gpu();
    (*event)->is_timed = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    checked(event).is_destroyed = true;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& mark = checked(event);
    auto& in = checked(stream);
    if (mark.gpu != in.gpu) return cudaErrorInvalidResourceHandle;
    if (in.is_capture_invalid) return cudaErrorStreamCaptureInvalidated;
    mark.stream = stream;
    mark.is_captured = in.capture != nullptr;
    if (mark.is_timed) {
      mark.reached = std::make_shared<std::chrono::steady_clock::time_point>();
      add_work(in, [at = mark.reached] {
        *at = std::chrono::steady_clock::now();
        return true;
      });
    }
    mark.ticket = in.num_queued;
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    for (auto event : {start, end}) {
      const auto& each = checked(event);
      if (!each.is_timed || !each.stream) return cudaErrorInvalidResourceHandle;
      if (each.stream->num_done < each.ticket) return cudaErrorNotReady;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(*end->reached - *start->reached).count();
    return cudaSuccess;
  });
}

// An event that was never recorded has happened.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(__func__, [=] {
    std::unique_lock lock(the_machine().mutex);
    auto& awaited = checked(event);
    if (awaited.is_captured) return cudaErrorCapturedEvent;
    if (awaited.stream) run_until(lock, *awaited.stream, awaited.ticket);
    return cudaSuccess;
  });
}

// Repeated queries run the work; a single query does not.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(__func__, [=] {
    std::unique_lock lock(the_machine().mutex);
    auto& awaited = checked(event);
    if (awaited.is_captured) return cudaErrorCapturedEvent;
    if (!awaited.stream || awaited.stream->num_done >= awaited.ticket) return cudaSuccess;
    advance(lock, *awaited.stream);
    return cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& waiting = checked(stream);
    auto& awaited = checked(event);
    if (awaited.is_captured) refuse("expected captures of one stream, got a wait for an event in a capture");
    if (waiting.capture) {
      waiting.is_capture_invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    return awaited.stream ? add_work(waiting, wait_for(awaited.stream, awaited.ticket)) : cudaSuccess;
  });
}
}
