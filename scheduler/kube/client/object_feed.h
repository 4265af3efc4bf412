#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/client/watch_event.h"

namespace mortise::kube {

/// What a reflector tells about the objects of one resource type. All calls come from the thread in Reflector::run, one
/// at a time, in the order in which things happened.
class ObjectFeed {
 public:
  virtual ~ObjectFeed() = default;

  /// A list begins. What came before stays valid until it is complete; another start without completion means that the
  /// last list was given up.
  virtual void list_started() = 0;
  virtual void listed(const ObjectName& name, const nlohmann::json& object) = 0;
  /// What was not listed since the start does not exist any more.
  virtual void list_completed(const std::string& resource_version) = 0;
  /// A new object, or a new state of one that is known.
  virtual void changed(const ObjectName& name, const nlohmann::json& object) = 0;
  /// `object` is its last state.
  virtual void deleted(const ObjectName& name, const nlohmann::json& object) = 0;
  /// Everything up to this version has been told; comes with every event and with bookmarks.
  virtual void progressed(const std::string& resource_version) = 0;
};

/// The same with decoded objects: derive, and hand a decoder such as kube::decode_pod to the constructor.
template <class T>
class TypedFeed : public ObjectFeed {
 public:
  using Decode = Result<T> (*)(const nlohmann::json& object);

  explicit TypedFeed(Decode decoder) : decode_(decoder) {}

  /// What on_replace will tell is not older than this moment.
  virtual void on_list_started() {}
  /// Every object there is, at this version.
  virtual void on_replace(std::vector<T> objects, const std::string& resource_version) = 0;
  virtual void on_upsert(T object) = 0;
  virtual void on_delete(const ObjectName& name) = 0;
  /// An object that cannot be decoded; nothing else is told of this state of it.
  virtual void on_bad_object(const ObjectName& name, const std::string& why) = 0;
  virtual void on_progress(const std::string& resource_version) = 0;

  void list_started() final {
    listed_.clear();
    on_list_started();
  }
  void listed(const ObjectName& name, const nlohmann::json& object) final {
    if (Result<T> decoded = decode(name, object); decoded.ok()) listed_.push_back(*std::move(decoded));
  }
  void list_completed(const std::string& resource_version) final {
    on_replace(std::exchange(listed_, {}), resource_version);
    on_progress(resource_version);
  }
  void changed(const ObjectName& name, const nlohmann::json& object) final {
    if (Result<T> decoded = decode(name, object); decoded.ok()) on_upsert(*std::move(decoded));
  }
  void deleted(const ObjectName& name, const nlohmann::json&) final { on_delete(name); }
  void progressed(const std::string& resource_version) final { on_progress(resource_version); }

 private:
  Result<T> decode(const ObjectName& name, const nlohmann::json& object) {
    Result<T> decoded = decode_(object);
    if (!decoded.ok()) on_bad_object(name, decoded.message());
    return decoded;
  }

  Decode decode_;
  std::vector<T> listed_;
};

}  // namespace mortise::kube
