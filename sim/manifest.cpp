#include "sim/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/json_text.h"
#include "scheduler/kube/objects/notes.h"
#include "scheduler/kube/objects/yaml_text.h"
#include "sim/files.h"
#include "sim/workload_pods.h"

namespace mortise::sim {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

class Reader {
 public:
  Status add(const json& document, const std::string& where) {
    if (document.is_null()) return ok_status();
    if (!document.is_object()) return Error{where + "must be a Kubernetes object"};
    const std::string kind = text_at(document, "kind");
    if (kind.empty()) return Error{where + "no kind; allowed: Kubernetes objects with apiVersion and kind"};
    if (kind.ends_with("List") && document.contains("items")) return add_items(document, kind, where);
    return add_object(document, kind, text_at(document, "apiVersion"), where);
  }

  Result<Manifest> finish(const std::string& path);
  bool has_pods_of(const json& workload) const;

 private:
  struct Workload {
    json object;
    std::string where;
  };

  Status add_items(const json& list, const std::string& kind, const std::string& where) {
    const json& items = list["items"];
    if (items.is_null()) return ok_status();
    if (!items.is_array()) return Error{where + "items must be an array"};
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string here = where + "items[" + std::to_string(i) + "]: ";
      if (!items[i].is_object()) return Error{here + "must be a Kubernetes object"};
      // Items of a typed list carry no kind of their own.
      std::string item_kind = text_at(items[i], "kind");
      if (item_kind.empty()) item_kind = kind.substr(0, kind.size() - 4);
      if (item_kind.empty()) return Error{here + "no kind; allowed: Kubernetes objects with apiVersion and kind"};
      std::string version = text_at(items[i], "apiVersion");
      if (version.empty() && kind != "List") version = text_at(list, "apiVersion");
      if (const Status added = add_object(items[i], item_kind, version, here); !added) return added;
    }
    return ok_status();
  }

  Status add_object(json object, const std::string& kind, const std::string& version, const std::string& where) {
    object["kind"] = kind;
    object["apiVersion"] = version;
    if (kind == "Pod" && (version.empty() || version == "v1")) return add_pod(object, where);
    const bool sized = kube::find_group_kind(version, kind).has_value();
    if (sized) {
      auto decoded = kube::decode_group_object(object);
      if (!decoded) return Error{where + decoded.message()};
      if (manifest_.objects.find(decoded->kind, decoded->ns, decoded->name) != nullptr) {
        return Error{where + kind + " " + quote(decoded->ns + (decoded->ns.empty() ? "" : "/") + decoded->name) +
                     " appears twice; each name may appear once in a namespace"};
      }
      manifest_.objects.put(*std::move(decoded));
    }
    if (makes_pods(version, kind)) {
      workloads_.push_back({std::move(object), where});
    } else if (!sized) {
      notes_.add_one_of("objects of kind " + quote(kind) + " are left out", name_of(object));
    }
    return ok_status();
  }

  Status add_pod(const json& object, const std::string& where) {
    auto pod = kube::decode_pod(object);
    if (!pod) return Error{where + pod.message()};
    if (pod->ns.empty()) pod->ns = "default";
    has_pods_ = true;
    return take(*std::move(pod), where);
  }

  Status take(kube::Pod pod, const std::string& where) {
    if (pod.name.empty()) return Error{where + "metadata.name of the Pod is missing"};
    if (!names_.insert(pod.key()).second) {
      return Error{where + "pod " + quote(pod.key()) + " appears twice; each name may appear once in a namespace"};
    }
    if (manifest_.pods.size() == kMaxManifestPods) {
      return Error{where + "more than " + std::to_string(kMaxManifestPods) + " pods; allowed: so many"};
    }
    if (pod.terminal()) {
      notes_.add_one_of("pods that have ended are left out", pod.key());
    } else {
      manifest_.pods.push_back({std::move(pod), where});
    }
    return ok_status();
  }

  static std::string name_of(const json& object) {
    const auto metadata = object.find("metadata");
    return metadata != object.end() && metadata->is_object() ? text_at(*metadata, "name") : std::string();
  }

  Manifest manifest_;
  std::vector<Workload> workloads_;
  std::set<std::string> names_;
  kube::Notes notes_;
  bool has_pods_ = false;
};

/// Whether some pod of the file is one of the workload's own.
bool Reader::has_pods_of(const json& workload) const {
  const std::string name = name_of(workload);
  return std::any_of(manifest_.pods.begin(), manifest_.pods.end(), [&](const ManifestPod& from) {
    const auto names = [&](const auto& label) { return label.second == name; };
    const auto owns = [&](const kube::OwnerReference& owner) { return owner.name == name; };
    return std::any_of(from.pod.owners.begin(), from.pod.owners.end(), owns) ||
           std::any_of(from.pod.labels.begin(), from.pod.labels.end(), names) ||
           std::any_of(from.pod.annotations.begin(), from.pod.annotations.end(), names);
  });
}

Result<Manifest> Reader::finish(const std::string& path) {
  for (const Workload& workload : workloads_) {
    if (has_pods_) {
      if (has_pods_of(workload.object)) continue;
      notes_.add_one_of("workloads are left out, as the file has Pods", name_of(workload.object));
      continue;
    }
    auto made = workload_pods(workload.object, kMaxManifestPods);
    if (!made) return Error{workload.where + made.message()};
    for (kube::GroupObject& group : made->groups) manifest_.objects.put(std::move(group));
    for (kube::Pod& pod : made->pods) {
      if (const Status taken = take(std::move(pod), workload.where); !taken) return taken.error();
    }
  }
  manifest_.notes = notes_.lines();
  if (!manifest_.pods.empty()) return std::move(manifest_);
  std::string why;
  for (const std::string& note : manifest_.notes) why += " (" + note + ")";
  return Error{path + ": no pod" + why + "; allowed: Pods, or one of " + pod_makers()};
}

}  // namespace

Result<Manifest> parse_manifest(const std::string& text, const std::string& file) {
  Reader reader;
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && (text[start] == '{' || text[start] == '[')) {
    const auto document = kube::parse_json_text(text, file);
    if (!document) return document.error();
    if (const Status added = reader.add(*document, file + ": "); !added) return added.error();
  } else {
    const Status read = kube::read_yaml_text(text, file, [&](const json& document, int line) {
      return reader.add(document, file + ":" + std::to_string(line) + ": ");
    });
    if (!read) return read.error();
  }
  return reader.finish(file);
}

Result<Manifest> read_manifest(const std::string& path) {
  if (const Status status = check_input(path); !status) return status.error();
  const auto text = read_file(path);
  if (!text) return text.error();
  return parse_manifest(*text, path);
}

}  // namespace mortise::sim
