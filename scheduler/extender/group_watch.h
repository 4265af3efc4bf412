#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/objects/gang_objects.h"

namespace mortise::extender {

/// A kind of group object that the API server has.
struct ServedGroupKind {
  kube::GroupKindInfo info;
  std::string api_version;  ///< GROUP/VERSION
};

/// Which kinds of group objects an API server has: most are custom resources, which may be installed at any time, and
/// in which version is its affair.
class GroupDiscovery {
 public:
  /// The client must outlive it.
  explicit GroupDiscovery(kube::ApiClient& client) : client_(client) {}

  /// Those that were not found before. An error means that the server did not say of some group; what it said of the
  /// others counts.
  std::vector<ServedGroupKind> look(const std::stop_token& stop, std::string& error);

 private:
  std::vector<std::string> versions(const std::string& group, const kube::CallOptions& call, std::string& error);
  std::set<std::string> resources(const std::string& group, const std::string& version, const kube::CallOptions& call,
                                  std::string& error);

  kube::ApiClient& client_;
  std::set<std::string> found_;  // GROUP/RESOURCE
};

}  // namespace mortise::extender
