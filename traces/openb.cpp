#include "traces/openb.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "traces/csv.h"
#include "traces/gang_rows.h"
#include "traces/limits.h"

namespace mortise::traces {

namespace {

enum Column : std::size_t { kName, kCpu, kMemory, kGpus, kGpuMilli, kSpec, kQos, kPhase, kCreated, kDeleted, kStarted };

constexpr std::int64_t kMaxGpuMilli = 1'000'000;

/// What a file may have.
constexpr auto kColumns = [] {
  std::array<std::string_view, std::size(kOpenbColumns) + std::size(kGangColumns)> all{};
  std::copy(std::begin(kGangColumns), std::end(kGangColumns),
            std::copy(std::begin(kOpenbColumns), std::end(kOpenbColumns), all.begin()));
  return all;
}();

Status read_gpus(const CsvReader& csv, PodRecord& pod) {
  const auto gpus = csv.number(kGpus, 0, kMaxGpus);
  if (!gpus) return gpus.error();
  const auto milli = csv.number(kGpuMilli, 0, kMaxGpuMilli);
  if (!milli) return milli.error();
  if (*gpus == 1 && *milli == 0) {
    return csv.error("pod '" + pod.name + "' has num_gpu 1 and gpu_milli 0; allowed: gpu_milli from 1 to 1000");
  }
  if (*gpus == 0) return ok_status();
  pod.gpus = static_cast<std::int32_t>(*gpus);
  pod.gpu_milli = pod.gpus > 1 ? kWholeGpu : std::min<MilliGpu>(*milli, kWholeGpu);
  pod.gpu_spec = csv.text(kSpec);
  return ok_status();
}

/// A moment in seconds, empty if the field is. Nothing happens to a pod before `earliest`.
Result<std::optional<std::int64_t>> read_moment(const CsvReader& csv, Column column, std::int64_t earliest) {
  if (csv.text(column).empty()) return std::optional<std::int64_t>{};
  const auto seconds = csv.number(column, 0, kMaxSeconds);
  if (!seconds) return seconds.error();
  if (*seconds < earliest) {
    return csv.error(std::string(kOpenbColumns[column]) + " is " + std::to_string(*seconds) + ", before the pod's " +
                     std::to_string(earliest) + "; allowed: creation_time <= scheduled_time <= deletion_time");
  }
  return std::optional<std::int64_t>{*seconds};
}

Status read_times(const CsvReader& csv, PodRecord& pod) {
  const auto created = csv.number(kCreated, 0, kMaxSeconds);
  if (!created) return created.error();
  const auto started = read_moment(csv, kStarted, *created);
  if (!started) return started.error();
  const std::int64_t begin = started->value_or(*created);
  const auto deleted = read_moment(csv, kDeleted, begin);
  if (!deleted) return deleted.error();
  pod.submit = *created * kSecond;
  if (started->has_value()) pod.wait = (begin - *created) * kSecond;
  if (deleted->has_value()) pod.duration = (**deleted - begin) * kSecond;
  return ok_status();
}

Result<PodRecord> read_row(const CsvReader& csv) {
  PodRecord pod;
  auto name = csv.name(kName);
  if (!name) return name.error();
  pod.name = *std::move(name);
  const auto cpu = csv.number(kCpu, 0, kMaxCpuMilli);
  if (!cpu) return cpu.error();
  pod.cpu = *cpu;
  const auto memory = csv.number(kMemory, 0, kMaxMemoryMib);
  if (!memory) return memory.error();
  pod.memory = *memory * kMiB;
  if (const Status gpus = read_gpus(csv, pod); !gpus) return gpus.error();
  if (csv.has_optional()) {
    pod.qos = csv.text(kQos);
    pod.status = csv.text(kPhase);
    if (const Status times = read_times(csv, pod); !times) return times.error();
  }
  return pod;
}

}  // namespace

Result<Trace> read_openb(std::istream& in, const std::string& file_name) {
  CsvReader csv(in, file_name);
  const Status header = csv.read_header(kColumns, kOpenbRequired, std::size(kOpenbColumns));
  if (!header) return header.error();
  Trace trace;
  trace.name = openb_trace_name(file_name);
  GangRows rows(trace, std::size(kOpenbColumns));
  while (true) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    auto pod = read_row(csv);
    if (!pod) return pod.error();
    if (const Status added = rows.add(csv, *std::move(pod)); !added) return added.error();
  }
  rows.finish();
  if (trace.pods.empty()) return csv.error("no pods after the header; allowed: one row or more");
  return trace;
}

void write_openb_pods(std::ostream& out, std::span<const PodRecord> pods) {
  for (const std::string_view column : kOpenbColumns) out << (column == kOpenbColumns[0] ? "" : ",") << column;
  out << '\n';
  for (const PodRecord& pod : pods) {
    const Nanoseconds start = pod.submit + pod.wait.value_or(0);
    out << csv_field(pod.name) << ',' << pod.cpu << ',' << pod.memory / kMiB << ',' << pod.gpus << ',' << pod.gpu_milli
        << ',' << csv_field(pod.gpu_spec) << ',' << csv_field(pod.qos) << ',' << csv_field(pod.status) << ','
        << pod.submit / kSecond << ',';
    if (pod.duration) out << (start + *pod.duration) / kSecond;
    out << ',';
    if (pod.wait) out << start / kSecond;
    out << '\n';
  }
}

std::string openb_trace_name(std::string_view file_name) {
  constexpr std::string_view kPrefix = "openb_pod_list_";
  constexpr std::string_view kSuffix = ".csv";
  if (const auto slash = file_name.rfind('/'); slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  if (file_name.starts_with(kPrefix)) file_name.remove_prefix(kPrefix.size());
  if (file_name.ends_with(kSuffix)) file_name.remove_suffix(kSuffix.size());
  return std::string(file_name);
}

}  // namespace mortise::traces
