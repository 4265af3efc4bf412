#include "scheduler/kube/objects/gpu_samples.h"

#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/json_text.h"
#include "scheduler/placement/device_set.h"

namespace mortise::kube {
namespace {

// A series has about 20 values: these are some 100,000 GPUs.
constexpr std::size_t kMaxValues = 2'000'000;
constexpr int kMaxDepth = 16;

/// Walks a document and builds nothing: three bytes of an answer may become hundreds in memory.
class SizeCheck final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool start_object(std::size_t) override { return count() && ++depth_ <= kMaxDepth; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override { return count() && ++depth_ <= kMaxDepth; }
  bool end_array() override { return depth_-- > 0; }
  bool key(string_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  Status fits() const {
    if (depth_ > kMaxDepth) return Error{"nested deeper than " + std::to_string(kMaxDepth) + " levels"};
    if (values_ > kMaxValues) return Error{"more than " + std::to_string(kMaxValues) + " values"};
    return ok_status();
  }

 private:
  bool count() { return ++values_ <= kMaxValues; }

  std::size_t values_ = 0;
  int depth_ = 0;
};

using Labels = std::map<std::string, std::string>;

std::string label(const Labels& labels, const char* name) {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string() : found->second;
}

/// Where a scrape puts labels of its target beside the exporter's, it renames the exporter's.
std::string exported(const Labels& labels, const std::string& name) {
  const std::string renamed = label(labels, ("exported_" + name).c_str());
  return renamed.empty() ? label(labels, name.c_str()) : renamed;
}

template <class Number>
std::optional<Number> number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<GpuSample> sample_of(const Labels& labels) {
  GpuSample sample;
  sample.pod = exported(labels, "pod");
  sample.ns = exported(labels, "namespace");
  sample.pod_uid = exported(labels, "pod_uid");
  const auto gpu = number<int>(label(labels, "gpu"));
  if (sample.pod.empty() || !label(labels, "GPU_I_ID").empty()) return std::nullopt;
  if (!gpu || *gpu < 0 || *gpu >= placement::kMaxDevices) return std::nullopt;
  sample.gpu = *gpu;
  for (const char* name : {"Hostname", "node"}) {
    if (std::string node = label(labels, name); !node.empty()) sample.nodes.push_back(std::move(node));
  }
  return sample;
}

}  // namespace

Result<std::vector<GpuSample>> parse_gpu_samples(std::string_view json) {
  SizeCheck size;
  nlohmann::json::sax_parse(json.begin(), json.end(), &size);
  if (const Status fits = size.fits(); !fits) return fits.error();
  const auto document = parse_json_text(json, "");
  if (!document.ok()) return document.error();
  std::optional<Error> mistake;
  const Field root(*document, mistake);
  const std::string status = root.member("status").text();
  if (!mistake && status != "success") {
    return Error{"status is " + quote(status) + ": " + quote(root.member("error").text())};
  }
  const Field data = root.member("data");
  const std::string type = data.member("resultType").text();
  if (!mistake && type != "vector") return Error{"data.resultType is " + quote(type) + "; allowed: vector"};
  std::vector<GpuSample> samples;
  for (const Field& series : data.member("result").items()) {
    auto sample = sample_of(series.member("metric").texts());
    const std::vector<Field> value = series.member("value").items();
    const std::string text = value.size() == 2 ? value[1].text() : std::string();
    if (mistake) break;
    const auto seconds = number<double>(text);
    // Of more seconds the nanoseconds could not be counted.
    if (!seconds || !(*seconds > 0) || *seconds > 9e9) return Error{"a value is " + quote(text) + ", which is no time"};
    if (!sample) continue;
    const double whole = std::floor(*seconds);
    sample->at = std::llround(whole) * kSecond + std::llround((*seconds - whole) * 1e9);
    samples.push_back(*std::move(sample));
  }
  if (mistake) return *mistake;
  return samples;
}

}  // namespace mortise::kube
