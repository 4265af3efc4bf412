#include "traces/gang_rows.h"

#include <utility>

#include "traces/limits.h"

namespace mortise::traces {

namespace {
enum Column : std::size_t { kGang, kSize, kRole, kRequired, kPreferred };
}  // namespace

Result<GangRows::Row> GangRows::read_row(const CsvReader& csv, const std::string& name) const {
  Row row;
  if (!csv.text(first_column_ + kGang).empty()) {
    auto gang = csv.name(first_column_ + kGang);
    if (!gang) return gang.error();
    row.gang = *std::move(gang);
  }
  if (csv.has(first_column_ + kSize)) {
    const auto size = csv.number(first_column_ + kSize, 1, kMaxGangSize);
    if (!size) return size.error();
    row.size = static_cast<std::uint32_t>(*size);
  }
  if (row.gang.empty() && row.size > 1) row.gang = name;
  row.role = csv.text(first_column_ + kRole);
  row.required_level = csv.text(first_column_ + kRequired);
  row.preferred_level = csv.text(first_column_ + kPreferred);
  return row;
}

Status GangRows::take_name(const CsvReader& csv, const char* what, const std::string& name) {
  const auto [first, is_new] = line_of_.emplace(name, csv.line());
  if (is_new) return ok_status();
  return csv.error(std::string(what) + " '" + name + "' is already on line " + std::to_string(first->second) +
                   "; allowed: each name once");
}

/// A new gang. Its name must not be a pod's or that of a gang whose rows ended before.
Status GangRows::open(const CsvReader& csv, const Row& row) {
  if (const Status name = take_name(csv, "gang", row.gang); !name) return name;
  trace_.gangs.push_back({row.gang, {}, row.required_level, row.preferred_level});
  open_ = true;
  return ok_status();
}

Status GangRows::join(const CsvReader& csv, const Row& row) {
  const GangRecord& gang = trace_.gangs.back();
  const auto differs = [&](std::size_t column, const std::string& here, const std::string& before) {
    return csv.error(std::string(kGangColumns[column]) + " is '" + here + "', but '" + before +
                     "' in the gang's rows before; allowed: the same in all rows of gang '" + gang.name + "'");
  };
  if (row.required_level != gang.required_level) return differs(kRequired, row.required_level, gang.required_level);
  if (row.preferred_level != gang.preferred_level)
    return differs(kPreferred, row.preferred_level, gang.preferred_level);
  if (gang.size() + row.size > kMaxGangSize) {
    return csv.error("gang '" + gang.name + "' has " + std::to_string(gang.size() + row.size) +
                     " pods; allowed: 1 to " + std::to_string(kMaxGangSize));
  }
  return ok_status();
}

Status GangRows::add(const CsvReader& csv, PodRecord pod) {
  const auto row = read_row(csv, pod.name);
  if (!row) return row.error();
  const bool goes_on = open_ && trace_.gangs.back().name == row->gang;
  if (!goes_on) finish();
  if (row->gang.empty()) {
    if (const Status name = take_name(csv, "pod", pod.name); !name) return name;
    trace_.pods.push_back(std::move(pod));
    return ok_status();
  }
  if (const Status fits = goes_on ? join(csv, *row) : open(csv, *row); !fits) return fits;
  gang_pods_ += row->size;
  if (gang_pods_ > kMaxGangPods) {
    return csv.error("the gangs up to here have " + std::to_string(gang_pods_) +
                     " pods; allowed: " + std::to_string(kMaxGangPods));
  }
  const auto gang = static_cast<std::uint32_t>(trace_.gangs.size() - 1);
  trace_.gangs[gang].roles.push_back({row->role, static_cast<std::uint32_t>(trace_.pods.size()), row->size});
  pod.gang = gang;
  const std::string name = pod.name;
  for (std::uint32_t i = 0; i < row->size; ++i) {
    if (row->size > 1) pod.name = name + "-" + std::to_string(i);
    if (const Status taken = take_name(csv, "pod", pod.name); !taken) return taken;
    trace_.pods.push_back(pod);
  }
  return ok_status();
}

void GangRows::finish() {
  if (open_ && trace_.gangs.back().size() == 1) {
    trace_.pods.back().gang.reset();
    trace_.gangs.pop_back();
  }
  open_ = false;
}

}  // namespace mortise::traces
