#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/kube/client/answer.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

/// A v1 ConfigMap with text data. The API server takes up to 1 MiB.
struct ConfigMap {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<OwnerReference> owners;  ///< written when it is created; an update leaves them as they are
  std::map<std::string, std::string> data;
  std::string stored;  ///< the object as the server has it; an update keeps what it holds beyond the fields above
};

Answer<ConfigMap> read_config_map(ApiClient& client, const std::string& ns, const std::string& name,
                                  const CallOptions& call = {});
/// kConflict: it exists.
Answer<ConfigMap> create_config_map(ApiClient& client, const ConfigMap& map, const CallOptions& call = {});
/// Writes over the state with the map's resource version, which must be set. kConflict: there is a later state, or it
/// was deleted and made anew.
Answer<ConfigMap> update_config_map(ApiClient& client, const ConfigMap& map, const CallOptions& call = {});
/// kNotFound: there is none.
Done delete_config_map(ApiClient& client, const std::string& ns, const std::string& name, const CallOptions& call = {});

}  // namespace mortise::kube
