#include "scheduler/extender/small_thread.h"

#include <utility>

namespace mortise::extender {

bool SmallThread::start(std::function<void()> work) {
  work_ = std::move(work);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const auto run = [](void* self) -> void* {
    static_cast<SmallThread*>(self)->work_();
    return nullptr;
  };
  started_ = pthread_create(&thread_, &attributes, run, this) == 0;
  pthread_attr_destroy(&attributes);
  return started_;
}

void SmallThread::join() {
  if (std::exchange(started_, false)) pthread_join(thread_, nullptr);
}

}  // namespace mortise::extender
