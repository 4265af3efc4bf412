#include "tests/unit/kube/manifest_pods.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "scheduler/kube/objects/yaml_text.h"

namespace mortise::test {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* pointer) {
  return object.is_object() ? object.value(json::json_pointer(pointer), std::string()) : std::string();
}

int number_at(const json& object, const char* pointer, int absent) {
  return object.is_object() ? object.value(json::json_pointer(pointer), absent) : absent;
}

json part_at(const json& object, const char* pointer) {
  const json::json_pointer path(pointer);
  return object.contains(path) ? object.at(path) : json();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

class Cluster {
 public:
  void apply(const json& document);
  AppliedManifest take();

 private:
  std::string name_of(const json& object) const;
  json owner(const json& object) const;
  json& add_pod(const json& parent, const json& pod_template, const std::string& name, const json& controller);

  void add_own_pod(const json& object);
  void add_pod_group(json object);
  void add_labels(const json& object);
  void add_deployment(const json& object);
  void add_job(const json& object);
  void add_job_set(const json& object);
  void add_train_job(const json& object);
  void add_leader_worker_set(const json& object);
  void add_kubeflow_job(const json& object);
  void add_volcano_job(const json& object);
  void add_ray_cluster(const json& object);
  void add_framework(const json& object);
  void add_clique_set(const json& object);

  std::vector<json> pods_;
  std::vector<json> objects_;
  std::vector<std::string> not_handled_;
  std::vector<json> groups_without_pods_;
};

std::string Cluster::name_of(const json& object) const {
  const std::string name = text_at(object, "/metadata/name");
  return name.empty() ? text_at(object, "/metadata/generateName") + "x1" : name;
}

json Cluster::owner(const json& object) const {
  return {{"apiVersion", object["apiVersion"]},
          {"kind", object["kind"]},
          {"name", name_of(object)},
          {"uid", "uid-" + name_of(object)},
          {"controller", true}};
}

json& Cluster::add_pod(const json& parent, const json& pod_template, const std::string& name, const json& controller) {
  json pod = pod_template.is_object() ? pod_template : json::object();
  pod["kind"] = "Pod";
  pod["apiVersion"] = "v1";
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = "uid-" + name;
  pod["metadata"]["ownerReferences"] = json::array({controller});
  if (const std::string ns = text_at(parent, "/metadata/namespace"); !ns.empty()) pod["metadata"]["namespace"] = ns;
  return pods_.emplace_back(std::move(pod));
}

void Cluster::add_own_pod(const json& object) {
  json pod = object;
  pod["metadata"]["name"] = name_of(object) + "-" + std::to_string(pods_.size());
  // KAI's pod-grouper makes the group of a pod that comes alone.
  if (const std::string group = text_at(object, "/metadata/annotations/pod-group-name"); !group.empty()) {
    objects_.push_back({{"apiVersion", "scheduling.run.ai/v2alpha2"},
                        {"kind", "PodGroup"},
                        {"metadata", {{"name", group}, {"namespace", text_at(object, "/metadata/namespace")}}},
                        {"spec", {{"minMember", 1}}}});
  }
  pods_.push_back(std::move(pod));
}

/// Annotations of a published sample that no API server would take as they are, and a version without its group.
void Cluster::add_pod_group(json object) {
  if (object["apiVersion"] == "v1alpha1") object["apiVersion"] = "scheduling.sigs.k8s.io/v1alpha1";
  if (object["metadata"].contains("annotations")) {
    for (auto& [key, value] : object["metadata"]["annotations"].items()) {
      if (!value.is_string()) value = value.dump();
    }
  }
  groups_without_pods_.push_back(object);
  objects_.push_back(std::move(object));
}

/// A document of nothing but labels, as documentation shows them: those of three pods.
void Cluster::add_labels(const json& object) {
  for (int i = 0; i < 3; ++i) {
    pods_.push_back(
        {{"kind", "Pod"}, {"metadata", {{"name", "pod-" + std::to_string(i)}, {"labels", object["labels"]}}}});
  }
}

/// Deployments, and what operators turn into one.
void Cluster::add_deployment(const json& object) {
  const int replicas = number_at(object, "/spec/replicas", number_at(object, "/spec/deploymentConfig/replicas", 1));
  for (int i = 0; i < replicas; ++i) {
    add_pod(object, part_at(object, "/spec/template"), name_of(object) + "-" + std::to_string(i),
            {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", name_of(object)}, {"controller", true}});
  }
}

void Cluster::add_job(const json& object) {
  objects_.push_back(object);
  const int parallelism = number_at(object, "/spec/parallelism", 1);
  const int pods = std::min(parallelism, number_at(object, "/spec/completions", parallelism));
  for (int i = 0; i < pods; ++i) {
    json& pod =
        add_pod(object, part_at(object, "/spec/template"), name_of(object) + "-" + std::to_string(i), owner(object));
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name_of(object);
    pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = std::to_string(i);
  }
}

void Cluster::add_job_set(const json& object) {
  objects_.push_back(object);
  for (const json& replicated : object["spec"]["replicatedJobs"]) {
    for (int i = 0; i < number_at(replicated, "/replicas", 1); ++i) {
      json job = {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", object["metadata"]}};
      job["spec"] = part_at(replicated, "/template/spec");
      const std::string name = name_of(object) + "-" + text_at(replicated, "/name") + "-" + std::to_string(i);
      job["metadata"]["name"] = name;
      auto& labels = job["spec"]["template"]["metadata"]["labels"];
      labels["jobset.sigs.k8s.io/jobset-name"] = name_of(object);
      labels["jobset.sigs.k8s.io/replicatedjob-name"] = text_at(replicated, "/name");
      labels["jobset.sigs.k8s.io/job-index"] = std::to_string(i);
      labels["jobset.sigs.k8s.io/job-key"] = "key-of-" + name;
      labels["jobset.sigs.k8s.io/restart-attempt"] = "0";
      add_job(job);
    }
  }
}

/// With one of the runtimes that come with the trainer, none of which asks for a pod group.
void Cluster::add_train_job(const json& object) {
  json set = {{"apiVersion", "jobset.x-k8s.io/v1alpha2"}, {"kind", "JobSet"}, {"metadata", object["metadata"]}};
  const int nodes = number_at(object, "/spec/trainer/numNodes", 1);
  json node = {{"name", "node"}, {"template", {{"spec", {{"parallelism", nodes}, {"completions", nodes}}}}}};
  set["spec"]["replicatedJobs"] = json::array({std::move(node)});
  add_job_set(set);
}

void Cluster::add_leader_worker_set(const json& object) {
  objects_.push_back(object);
  const json set = part_at(object, "/spec/leaderWorkerTemplate");
  const int size = number_at(set, "/size", 1);
  for (int group = 0; group < number_at(object, "/spec/replicas", 1); ++group) {
    for (int i = 0; i < size; ++i) {
      const bool leader = i == 0 && set.contains("leaderTemplate");
      const std::string of_group = name_of(object) + "-" + std::to_string(group);
      json& pod =
          add_pod(object, set[leader ? "leaderTemplate" : "workerTemplate"],
                  i == 0 ? of_group : of_group + "-" + std::to_string(i),
                  {{"apiVersion", "apps/v1"}, {"kind", "StatefulSet"}, {"name", of_group}, {"controller", true}});
      auto& labels = pod["metadata"]["labels"];
      labels["leaderworkerset.sigs.k8s.io/name"] = name_of(object);
      labels["leaderworkerset.sigs.k8s.io/group-index"] = std::to_string(group);
      labels["leaderworkerset.sigs.k8s.io/worker-index"] = std::to_string(i);
      labels["leaderworkerset.sigs.k8s.io/template-revision-hash"] = "rev1";
      pod["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/size"] = std::to_string(size);
    }
  }
}

void Cluster::add_kubeflow_job(const json& object) {
  objects_.push_back(object);
  const std::string name = name_of(object);
  const bool mpi_operator = object["apiVersion"] == "kubeflow.org/v2beta1";
  const std::map<std::string, std::string> specs = {{"PyTorchJob", "pytorchReplicaSpecs"},
                                                    {"MPIJob", "mpiReplicaSpecs"}};
  for (const auto& [type, replicas] : object["spec"][specs.at(object["kind"])].items()) {
    std::string role = type;
    std::transform(role.begin(), role.end(), role.begin(), [](unsigned char c) { return std::tolower(c); });
    for (int i = 0; i < number_at(replicas, "/replicas", 1); ++i) {
      json controller = owner(object);
      // mpi-operator lets a Job of its own run the launcher.
      if (mpi_operator && role == "launcher") {
        controller = {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", name + "-launcher"}, {"controller", true}};
      }
      const std::string pod_name = name + "-" + role + "-" + std::to_string(i);
      auto& labels = add_pod(object, part_at(replicas, "/template"), pod_name, controller)["metadata"]["labels"];
      labels["training.kubeflow.org/job-name"] = name;
      labels["training.kubeflow.org/replica-index"] = std::to_string(i);
      labels["training.kubeflow.org/operator-name"] = mpi_operator ? "mpi-operator" : "pytorchjob-controller";
      labels[mpi_operator ? "training.kubeflow.org/job-role" : "training.kubeflow.org/replica-type"] = role;
    }
  }
}

void Cluster::add_volcano_job(const json& object) {
  const std::string group = name_of(object) + "-uid-" + name_of(object);
  json pod_group = {{"apiVersion", "scheduling.volcano.sh/v1beta1"}, {"kind", "PodGroup"}};
  pod_group["metadata"] = {{"name", group}};
  pod_group["spec"] = {{"minMember", object["spec"]["minAvailable"]}};
  for (const char* key : {"networkTopology", "priorityClassName"}) {
    if (object["spec"].contains(key)) pod_group["spec"][key] = object["spec"][key];
  }
  for (const json& task : object["spec"]["tasks"]) {
    const std::string task_name = text_at(task, "/name");
    const int replicas = number_at(task, "/replicas", 1);
    pod_group["spec"]["minTaskMember"][task_name] = number_at(task, "/minAvailable", replicas);
    for (int i = 0; i < replicas; ++i) {
      json& pod =
          add_pod(object, task["template"], name_of(object) + "-" + task_name + "-" + std::to_string(i), owner(object));
      pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group;
      pod["metadata"]["annotations"]["volcano.sh/task-spec"] = task_name;
      pod["metadata"]["labels"]["volcano.sh/job-name"] = name_of(object);
    }
  }
  objects_.push_back(std::move(pod_group));
}

void Cluster::add_ray_cluster(const json& object) {
  objects_.push_back(object);
  const auto add = [&](const json& group, const std::string& name, const char* type, int count) {
    for (int i = 0; i < count; ++i) {
      auto& labels =
          add_pod(object, part_at(group, "/template"), name_of(object) + "-" + name + "-" + std::to_string(i),
                  owner(object))["metadata"]["labels"];
      labels["ray.io/cluster"] = name_of(object);
      labels["ray.io/node-type"] = type;
      labels["ray.io/group"] = name;
    }
  };
  add(object["spec"]["headGroupSpec"], "headgroup", "head", 1);
  for (const json& group : object["spec"]["workerGroupSpecs"]) {
    add(group, text_at(group, "/groupName"), "worker", number_at(group, "/replicas", 0));
  }
}

void Cluster::add_framework(const json& object) {
  for (const json& role : object["spec"]["taskRoles"]) {
    for (int i = 0; i < number_at(role, "/taskNumber", 1); ++i) {
      add_pod(object, part_at(role, "/task/pod"),
              name_of(object) + "-" + text_at(role, "/name") + "-" + std::to_string(i), owner(object));
    }
  }
}

/// Grove's groups are PodGangs of its own, which is none of the conventions.
void Cluster::add_clique_set(const json& object) {
  for (const json& clique : object["spec"]["template"]["cliques"]) {
    for (int i = 0; i < number_at(clique, "/spec/replicas", 1); ++i) {
      json& pod = add_pod(object, {{"spec", clique["spec"]["podSpec"]}},
                          name_of(object) + "-" + text_at(clique, "/name") + "-" + std::to_string(i),
                          {{"apiVersion", "grove.io/v1alpha1"}, {"kind", "PodClique"}, {"controller", true}});
      pod["metadata"]["labels"]["grove.io/podclique"] = text_at(clique, "/name");
    }
  }
}

void Cluster::apply(const json& document) {
  if (document.is_object() && document.contains("labels")) return add_labels(document);
  if (!document.is_object() || !document.contains("kind")) return;
  const std::string kind = document["kind"];
  static const std::set<std::string> without_pods = {
      "Namespace",    "Service",    "Secret", "PersistentVolumeClaim", "ResourceClaim", "ResourceClaimTemplate",
      "ClusterQueue", "LocalQueue", "Queue",  "ResourceFlavor",        "PriorityClass", "ComputeDomain",
  };
  if (without_pods.contains(kind)) return;
  using Add = void (Cluster::*)(const json&);
  static const std::map<std::string, Add> makers = {
      {"Pod", &Cluster::add_own_pod},
      {"Deployment", &Cluster::add_deployment},
      {"NIMService", &Cluster::add_deployment},
      {"VLLMRuntime", &Cluster::add_deployment},
      {"JobSet", &Cluster::add_job_set},
      {"TrainJob", &Cluster::add_train_job},
      {"LeaderWorkerSet", &Cluster::add_leader_worker_set},
      {"PyTorchJob", &Cluster::add_kubeflow_job},
      {"MPIJob", &Cluster::add_kubeflow_job},
      {"RayCluster", &Cluster::add_ray_cluster},
      {"Framework", &Cluster::add_framework},
      {"PodCliqueSet", &Cluster::add_clique_set},
  };
  if (const auto maker = makers.find(kind); maker != makers.end()) {
    (this->*maker->second)(document);
  } else if (kind == "Job") {
    document["apiVersion"] == "batch/v1" ? add_job(document) : add_volcano_job(document);
  } else if (kind == "RayJob") {
    json cluster = {{"apiVersion", "ray.io/v1"}, {"kind", "RayCluster"}, {"metadata", document["metadata"]}};
    cluster["spec"] = document["spec"]["rayClusterSpec"];
    cluster["metadata"]["name"] = name_of(document);
    add_ray_cluster(cluster);
  } else if (kind == "AppWrapper") {
    for (const json& component : document["spec"]["components"]) {
      json made = component["template"];
      made["metadata"]["name"] = name_of(made);
      apply(made);
    }
  } else if (kind == "PodGroup" || kind == "Workload") {
    add_pod_group(document);
  } else {
    not_handled_.push_back(kind);
  }
}

/// Members of a group whose manifest shows the group alone.
std::vector<json> members_of(const json& group) {
  const std::string name = group["metadata"]["name"];
  json pod = {{"kind", "Pod"}, {"metadata", {{"namespace", text_at(group, "/metadata/namespace")}}}};
  std::map<std::string, int> roles = {{"", number_at(group, "/spec/minMember", 0)}};
  const std::string version = group["apiVersion"];
  if (version.starts_with("scheduling.run.ai/")) {
    pod["metadata"]["annotations"]["pod-group-name"] = name;
    for (const json& sub : part_at(group, "/spec/subGroups")) roles[sub["name"]] = sub.value("minMember", 0);
  } else if (version.starts_with("scheduling.sigs.k8s.io/")) {
    pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/name"] = name;
  } else {
    pod["spec"]["schedulingGroup"]["podGroupName"] = name;
    roles[""] = number_at(group, "/spec/schedulingPolicy/gang/minCount", 0);
  }
  std::vector<json> pods;
  for (const auto& [role, count] : roles) {
    if (!role.empty()) pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] = role;
    for (int i = 0; i < count; ++i) {
      pod["metadata"]["name"] = "member-" + role + std::to_string(i);
      pods.push_back(pod);
    }
  }
  return pods;
}

AppliedManifest Cluster::take() {
  if (pods_.empty()) {
    for (const json& group : std::vector<json>(groups_without_pods_)) {
      if (group["kind"] == "PodGroup") {
        for (json& pod : members_of(group)) pods_.push_back(std::move(pod));
      } else if (groups_without_pods_.size() == 1) {
        // A workload alone: its controller makes a pod group of each template.
        for (const json& part : group["spec"]["podGroupTemplates"]) {
          json made = {{"apiVersion", group["apiVersion"]}, {"kind", "PodGroup"}, {"spec", part}};
          made["metadata"]["name"] = name_of(group) + "-" + text_at(part, "/name");
          for (json& pod : members_of(made)) pods_.push_back(std::move(pod));
          objects_.push_back(std::move(made));
        }
      }
    }
  }
  AppliedManifest applied;
  for (const json& pod : pods_) applied.pods.push_back(pod.dump());
  for (const json& object : objects_) applied.objects.push_back(object.dump());
  applied.not_handled = not_handled_;
  return applied;
}

}  // namespace

Result<AppliedManifest> apply_manifest(std::string text, const std::string& file) {
  replace_all(text, "__NUM_NODES__", "2");
  // A published sample says this twice; kubectl takes the last.
  replace_all(text, "              restartPolicy: Never\n              nodeSelector:\n",
              "              nodeSelector:\n");
  Cluster cluster;
  const Status read = kube::read_yaml_text(text, file, [&](const json& document, int) {
    cluster.apply(document);
    return ok_status();
  });
  if (!read) return read.error();
  return cluster.take();
}

}  // namespace mortise::test
