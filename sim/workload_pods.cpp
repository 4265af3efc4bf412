#include "sim/workload_pods.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/field.h"

namespace mortise::sim {
namespace {

using kube::Field;
using nlohmann::json;
using Labels = std::map<std::string, std::string>;

constexpr std::int32_t kMostReplicas = 1'000'000;

/// The value at the end of this path; null where there is none.
const json& at(const json& object, std::initializer_list<const char*> path) {
  static const json kNull;
  const json* here = &object;
  for (const char* key : path) {
    if (!here->is_object()) return kNull;
    const auto found = here->find(key);
    if (found == here->end()) return kNull;
    here = &*found;
  }
  return *here;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// The pods of one workload, one template after the other.
class Maker {
 public:
  Maker(const json& object, std::size_t most) : object_(object), most_(most), root_(object_, mistake_) {
    const Field metadata = root_.member("metadata");
    name_ = metadata.member("name").text();
    if (name_.empty()) name_ = metadata.member("generateName").text();
    ns_ = metadata.member("namespace").text();
    if (ns_.empty()) ns_ = "default";
    owner_ = {root_.member("apiVersion").text(), root_.member("kind").text(), name_, {}, true};
  }

  void make_job();
  void make_job_set();
  void make_leader_worker_set();
  void make_kubeflow_job();
  void make_volcano_job();
  void make_ray_cluster();

  Result<WorkloadPods> take() {
    if (mistake_) return *mistake_;
    if (name_.empty()) return Error{"metadata.name of the " + owner_.kind + " is missing"};
    return std::move(made_);
  }

 private:
  /// Makes one pod of the template for the others to be copies of; null when it cannot be read.
  std::optional<kube::Pod> prototype(const json& pod_template);
  void add(kube::Pod pod, std::string name) {
    if (mistake_) return;
    if (made_.pods.size() == most_) {
      mistake_ = Error{"its replicas are more than " + std::to_string(most_) + " pods; allowed: so many"};
      return;
    }
    pod.name = std::move(name);
    made_.pods.push_back(std::move(pod));
  }
  static std::int32_t replicas(const Field& of, const char* key, std::int32_t absent) {
    return of.member(key).count(0, kMostReplicas).value_or(absent);
  }
  void add_job(const json& pod_template, const Field& spec, const std::string& name, const Labels& labels,
               const Labels& annotations = {});
  void add_group(json spec, const std::string& name);

  const json object_;
  const std::size_t most_;
  std::optional<Error> mistake_;
  Field root_;
  std::string name_;
  std::string ns_;
  kube::OwnerReference owner_;
  WorkloadPods made_;
};

std::optional<kube::Pod> Maker::prototype(const json& pod_template) {
  json pod = {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", json::object()}, {"spec", at(pod_template, {"spec"})}};
  for (const char* key : {"labels", "annotations"}) pod["metadata"][key] = at(pod_template, {"metadata", key});
  auto decoded = kube::decode_pod(pod);
  if (!decoded) {
    if (!mistake_) mistake_ = Error{"a pod template: " + decoded.message()};
    return std::nullopt;
  }
  decoded->ns = ns_;
  decoded->owners = {owner_};
  return *std::move(decoded);
}

void Maker::add_job(const json& pod_template, const Field& spec, const std::string& name, const Labels& labels,
                    const Labels& annotations) {
  auto pod = prototype(pod_template);
  if (!pod) return;
  pod->owners = {{"batch/v1", "Job", name, {}, true}};
  for (const auto& [key, value] : labels) pod->labels[key] = value;
  for (const auto& [key, value] : annotations) pod->annotations[key] = value;
  pod->labels["batch.kubernetes.io/job-name"] = name;
  const std::int32_t parallelism = replicas(spec, "parallelism", 1);
  const std::int32_t pods = std::min(parallelism, replicas(spec, "completions", parallelism));
  for (std::int32_t i = 0; i < pods && !mistake_; ++i) {
    pod->labels["batch.kubernetes.io/job-completion-index"] = std::to_string(i);
    add(*pod, name + "-" + std::to_string(i));
  }
}

void Maker::make_job() {
  add_job(at(object_, {"spec", "template"}), root_.member("spec"), name_, {});
}

/// The annotation of a JobSet holds for all of its jobs, that of a job template for its own.
Labels exclusive_topology(const Field& job_set, const Field& replicated) {
  const std::string key = "alpha.jobset.sigs.k8s.io/exclusive-topology";
  for (const Field& from : {replicated.member("template"), job_set}) {
    const Labels annotations = from.member("metadata").member("annotations").texts();
    if (const auto found = annotations.find(key); found != annotations.end()) return {*found};
  }
  return {};
}

void Maker::make_job_set() {
  const std::string prefix = "jobset.sigs.k8s.io/";
  const json& jobs = at(object_, {"spec", "replicatedJobs"});
  std::size_t index = 0;
  for (const Field& replicated : root_.member("spec").member("replicatedJobs").items()) {
    const json& raw = jobs[index++];
    const std::string role = replicated.member("name").text();
    for (std::int32_t i = 0; i < replicas(replicated, "replicas", 1) && !mistake_; ++i) {
      const std::string job = name_ + "-" + role + "-" + std::to_string(i);
      const std::size_t before = made_.pods.size();
      add_job(at(raw, {"template", "spec", "template"}), replicated.member("template").member("spec"), job,
              {{prefix + "jobset-name", name_},
               {prefix + "replicatedjob-name", role},
               {prefix + "job-index", std::to_string(i)},
               {prefix + "job-key", job},
               {prefix + "restart-attempt", "0"}},
              exclusive_topology(root_, replicated));
      if (made_.pods.size() == before) break;  // jobs without pods, however many
    }
  }
}

void Maker::make_leader_worker_set() {
  const std::string prefix = "leaderworkerset.sigs.k8s.io/";
  const Field spec = root_.member("spec");
  const std::int32_t size = spec.member("leaderWorkerTemplate").member("size").count(1, kMostReplicas).value_or(1);
  const json& workers = at(object_, {"spec", "leaderWorkerTemplate", "workerTemplate"});
  const json& leaders = at(object_, {"spec", "leaderWorkerTemplate", "leaderTemplate"});
  auto worker = prototype(workers);
  auto leader = prototype(leaders.is_null() ? workers : leaders);
  if (!worker || !leader) return;
  const Labels annotations = root_.member("metadata").member("annotations").texts();
  for (std::int32_t group = 0; group < replicas(spec, "replicas", 1) && !mistake_; ++group) {
    const std::string of_group = name_ + "-" + std::to_string(group);
    for (std::int32_t i = 0; i < size && !mistake_; ++i) {
      kube::Pod pod = i == 0 ? *leader : *worker;
      pod.owners = {{"apps/v1", "StatefulSet", i == 0 ? name_ : of_group, {}, true}};
      pod.labels[prefix + "name"] = name_;
      pod.labels[prefix + "group-index"] = std::to_string(group);
      pod.labels[prefix + "worker-index"] = std::to_string(i);
      pod.annotations[prefix + "size"] = std::to_string(size);
      const auto exclusive = annotations.find(prefix + "exclusive-topology");
      if (exclusive != annotations.end()) pod.annotations[exclusive->first] = exclusive->second;
      add(std::move(pod), i == 0 ? of_group : of_group + "-" + std::to_string(i));
    }
  }
}

/// The replica specs are a map whose name begins with the framework's: pytorchReplicaSpecs.
void Maker::make_kubeflow_job() {
  const std::string prefix = "training.kubeflow.org/";
  const bool mpi_operator = owner_.api_version == "kubeflow.org/v2beta1";
  for (const auto& [key, types] : root_.member("spec").members()) {
    if (!key.ends_with("ReplicaSpecs")) continue;
    for (const auto& [type, replica] : types.members()) {
      auto pod = prototype(at(object_, {"spec", key.c_str(), type.c_str(), "template"}));
      if (!pod) return;
      const std::string role = lower_case(type);
      // The MPI operator lets a Job of its own run the launcher.
      if (mpi_operator && role == "launcher") pod->owners = {{"batch/v1", "Job", name_ + "-launcher", {}, true}};
      pod->labels[prefix + "job-name"] = name_;
      pod->labels[prefix + "operator-name"] = mpi_operator ? "mpi-operator" : lower_case(owner_.kind) + "-controller";
      pod->labels[prefix + (mpi_operator ? "job-role" : "replica-type")] = role;
      for (std::int32_t i = 0; i < replicas(replica, "replicas", 1) && !mistake_; ++i) {
        pod->labels[prefix + "replica-index"] = std::to_string(i);
        add(*pod, name_ + "-" + role + "-" + std::to_string(i));
      }
    }
  }
}

void Maker::add_group(json spec, const std::string& name) {
  auto group = kube::decode_group_object({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                                          {"kind", "PodGroup"},
                                          {"metadata", {{"name", name}, {"namespace", ns_}}},
                                          {"spec", std::move(spec)}});
  if (group) {
    made_.groups.push_back(*std::move(group));
  } else if (!mistake_) {
    mistake_ = group.error();
  }
}

void Maker::make_volcano_job() {
  const Field spec = root_.member("spec");
  // Volcano adds the job's UID, which a manifest does not have.
  json group = {{"minTaskMember", json::object()}};
  std::int64_t total = 0;
  std::size_t index = 0;
  for (const Field& task : spec.member("tasks").items()) {
    auto pod = prototype(at(at(object_, {"spec", "tasks"})[index], {"template"}));
    if (!pod) return;
    std::string role = task.member("name").text();
    if (role.empty()) role = "default" + std::to_string(index);
    ++index;
    const std::int32_t count = replicas(task, "replicas", 1);
    total += count;
    group["minTaskMember"][role] = replicas(task, "minAvailable", count);
    pod->annotations["scheduling.k8s.io/group-name"] = name_;
    pod->annotations["volcano.sh/task-spec"] = role;
    pod->labels["volcano.sh/job-name"] = name_;
    for (std::int32_t i = 0; i < count && !mistake_; ++i) add(*pod, name_ + "-" + role + "-" + std::to_string(i));
  }
  group["minMember"] = spec.member("minAvailable")
                           .count(0, kMostReplicas)
                           .value_or(static_cast<std::int32_t>(std::min<std::int64_t>(total, kMostReplicas)));
  for (const char* key : {"networkTopology", "priorityClassName"}) {
    if (const json& value = at(object_, {"spec", key}); !value.is_null()) group[key] = value;
  }
  add_group(std::move(group), name_);
}

void Maker::make_ray_cluster() {
  const Field spec = root_.member("spec");
  const std::string gang = root_.member("metadata").member("labels").member("ray.io/gang-scheduling-enabled").text();
  const auto add_ray = [&](const json& pod_template, const std::string& type, const std::string& group,
                           std::int64_t count) {
    auto pod = prototype(pod_template);
    if (!pod) return;
    pod->labels["ray.io/cluster"] = name_;
    pod->labels["ray.io/node-type"] = type;
    pod->labels["ray.io/group"] = group;
    if (!gang.empty()) pod->labels["ray.io/gang-scheduling-enabled"] = gang;
    for (std::int64_t i = 0; i < count && !mistake_; ++i) {
      add(*pod, name_ + "-" + group + "-" + type + "-" + std::to_string(i));
    }
  };
  add_ray(at(object_, {"spec", "headGroupSpec", "template"}), "head", "headgroup", 1);
  std::size_t index = 0;
  for (const Field& group : spec.member("workerGroupSpecs").items()) {
    const json& raw = at(object_, {"spec", "workerGroupSpecs"})[index++];
    const std::int32_t workers = std::max(replicas(group, "replicas", 0), replicas(group, "minReplicas", 0));
    const std::int64_t hosts = group.member("numOfHosts").count(1, kMostReplicas).value_or(1);
    add_ray(at(raw, {"template"}), "worker", group.member("groupName").text(), workers * hosts);
  }
}

struct Row {
  std::string_view group;  // of the API
  std::string_view kind;
  void (Maker::*make)();
};

constexpr std::array<Row, 12> kRows = {{
    {"batch", "Job", &Maker::make_job},
    {"jobset.x-k8s.io", "JobSet", &Maker::make_job_set},
    {"leaderworkerset.x-k8s.io", "LeaderWorkerSet", &Maker::make_leader_worker_set},
    {"kubeflow.org", "PyTorchJob", &Maker::make_kubeflow_job},
    {"kubeflow.org", "TFJob", &Maker::make_kubeflow_job},
    {"kubeflow.org", "MPIJob", &Maker::make_kubeflow_job},
    {"kubeflow.org", "XGBoostJob", &Maker::make_kubeflow_job},
    {"kubeflow.org", "PaddleJob", &Maker::make_kubeflow_job},
    {"kubeflow.org", "JAXJob", &Maker::make_kubeflow_job},
    {"kubeflow.org", "MXJob", &Maker::make_kubeflow_job},
    {"batch.volcano.sh", "Job", &Maker::make_volcano_job},
    {"ray.io", "RayCluster", &Maker::make_ray_cluster},
}};

const Row* find_row(std::string_view api_version, std::string_view kind) {
  const std::string_view group = api_version.substr(0, api_version.find('/'));
  const auto found =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.group == group && row.kind == kind; });
  return found == kRows.end() ? nullptr : &*found;
}

}  // namespace

bool makes_pods(std::string_view api_version, std::string_view kind) {
  return find_row(api_version, kind) != nullptr;
}

std::string pod_makers() {
  std::string text;
  for (const Row& row : kRows) {
    text += (text.empty() ? "" : ", ") + std::string(row.kind);
    if (row.group == "batch.volcano.sh") text += " of Volcano";
  }
  return text;
}

Result<WorkloadPods> workload_pods(const json& object, std::size_t most) {
  Maker maker(object, most);
  (maker.*find_row(object.value("apiVersion", ""), object.value("kind", ""))->make)();
  return maker.take();
}

}  // namespace mortise::sim
