#include "scheduler/kube/objects/resources.h"

#include <array>
#include <string>

#include "scheduler/base/quantity.h"
#include "scheduler/base/quote.h"

namespace mortise::kube {
namespace {

constexpr std::array<ResourceInfo, 6> kResources = {{
    {"cpu", Meaning::kCpu, true, true},
    {"memory", Meaning::kMemory, true, true},
    {"pods", Meaning::kPods, true, false},
    {"nvidia.com/gpu", Meaning::kGpus, true, true},
    // Node lists of the openb trace; its pods ask by annotation.
    {"alibabacloud.com/gpu-count", Meaning::kGpus, true, false},
    {"mortise.dev/gpu-milli", Meaning::kGpuShare, false, true},
}};

Error refused(const ResourceInfo& resource, std::string_view quantity, std::string_view why) {
  return Error{std::string(resource.name) + ": invalid quantity " + quote(quantity) + ": " + std::string(why)};
}

}  // namespace

std::span<const ResourceInfo> resource_table() {
  return kResources;
}

Result<std::int64_t> resource_amount(const ResourceInfo& resource, std::string_view quantity) {
  const Result<Quantity> parsed = Quantity::parse(quantity);
  if (!parsed) return Error{std::string(resource.name) + ": " + parsed.message()};
  if (parsed->negative()) return refused(resource, quantity, "negative");
  if (resource.meaning == Meaning::kCpu) return parsed->milli_rounded_up();
  if (resource.meaning == Meaning::kMemory) return parsed->rounded_up();
  const Result<std::int64_t> whole = parsed->whole();
  if (!whole) return refused(resource, quantity, whole.message());
  return *whole;
}

Result<std::optional<std::int64_t>> listed_amount(const ResourceInfo& resource, const ResourceList& list,
                                                  const ResourceList& otherwise) {
  for (const ResourceList* source : {&list, &otherwise}) {
    const auto found = source->find(std::string(resource.name));
    if (found == source->end()) continue;
    const Result<std::int64_t> amount = resource_amount(resource, found->second);
    if (!amount) return amount.error();
    return std::optional<std::int64_t>(*amount);
  }
  return std::optional<std::int64_t>();
}

}  // namespace mortise::kube
