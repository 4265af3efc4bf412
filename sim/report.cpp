#include "sim/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "scheduler/base/json_depth.h"
#include "scheduler/base/rng.h"

namespace mortise::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kInputsDigestKey = "inputs_digest";
constexpr const char* kDigestKey = "digest";

/// Names come from file names and may hold any bytes; JSON text must be UTF-8.
std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json nullable(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> from_nullable(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<double>();
}

Json curve_json(const std::vector<CurveRow>& curve) {
  Json rows = Json::array();
  for (const CurveRow& row : curve) {
    rows.push_back({{"arrived_pct", row.arrived_pct},
                    {"allocation_pct", nullable(row.allocation_pct)},
                    {"frag_pct_of_idle", nullable(row.frag_pct_of_idle)},
                    {"frag_pct_of_capacity", nullable(row.frag_pct_of_capacity)}});
  }
  return rows;
}

Json topology_json(const TopologyMeans& means) {
  return {{"pods", means.pods},
          {"bandwidth_pct", means.bandwidth_pct},
          {"ring_pct", means.ring_pct},
          {"numa_nodes", nullable(means.numa_nodes)}};
}

Json gangs_json(const GangFigures& gangs) {
  Json spread = Json::array();
  for (const GangSpread& level : gangs.spread) spread.push_back({{"level", level.level}, {"domains", level.domains}});
  return {
      {"arrived", gangs.arrived}, {"placed", gangs.placed}, {"failed", gangs.failed}, {"spread", std::move(spread)}};
}

GangFigures gangs_from(const Json& json) {
  GangFigures gangs{json.at("arrived").get<std::int64_t>(),
                    json.at("placed").get<std::int64_t>(),
                    json.at("failed").get<std::int64_t>(),
                    {}};
  for (const Json& level : json.at("spread")) {
    gangs.spread.push_back({level.at("level").get<std::string>(), level.at("domains").get<double>()});
  }
  return gangs;
}

Json to_json(const ReplayResult& run) {
  Json json = {{"trace", run.trace},
               {"policy", run.policy},
               {"seed", run.seed},
               {"arrival", run.arrival},
               {"nodes", run.nodes},
               {"gpus", run.gpus},
               {"pods_arrived", run.pods_arrived},
               {"pods_placed", run.pods_placed},
               {"pods_failed", run.pods_failed},
               {"pods_pending", run.pods_pending},
               {"allocation_pct", run.allocation_pct},
               {"frag_pct_of_idle", nullable(run.frag_pct_of_idle)},
               {"frag_pct_of_capacity", run.frag_pct_of_capacity}};
  if (run.topology) json["topology"] = topology_json(*run.topology);
  if (run.gangs) json["gangs"] = gangs_json(*run.gangs);
  json["curve"] = curve_json(run.curve);
  return json;
}

/// Throws what the JSON library throws when a field is missing or of another type.
ReplayResult from_json(const Json& json) {
  ReplayResult run;
  json.at("trace").get_to(run.trace);
  json.at("policy").get_to(run.policy);
  json.at("seed").get_to(run.seed);
  json.at("arrival").get_to(run.arrival);
  json.at("nodes").get_to(run.nodes);
  json.at("gpus").get_to(run.gpus);
  json.at("pods_arrived").get_to(run.pods_arrived);
  json.at("pods_placed").get_to(run.pods_placed);
  json.at("pods_failed").get_to(run.pods_failed);
  json.at("pods_pending").get_to(run.pods_pending);
  json.at("allocation_pct").get_to(run.allocation_pct);
  run.frag_pct_of_idle = from_nullable(json.at("frag_pct_of_idle"));
  json.at("frag_pct_of_capacity").get_to(run.frag_pct_of_capacity);
  if (const auto topology = json.find("topology"); topology != json.end()) {
    run.topology = TopologyMeans{topology->at("pods").get<std::int64_t>(), topology->at("bandwidth_pct").get<double>(),
                                 topology->at("ring_pct").get<double>(), from_nullable(topology->at("numa_nodes"))};
  }
  if (const auto gangs = json.find("gangs"); gangs != json.end()) run.gangs = gangs_from(*gangs);
  for (const Json& row : json.at("curve")) {
    run.curve.push_back({row.at("arrived_pct").get<std::int64_t>(), from_nullable(row.at("allocation_pct")),
                         from_nullable(row.at("frag_pct_of_idle")), from_nullable(row.at("frag_pct_of_capacity"))});
  }
  return run;
}

std::string digest_of(const Json& json) {
  return fmt::format("{:016x}", hash_text(to_text(json)));
}

/// Means of hundredths have no meaning far behind the point.
double tidy(double value) {
  return std::nearbyint(value * 1e4) / 1e4;
}

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {
      {"mean", tidy(spread->mean)}, {"min", tidy(spread->min)}, {"max", tidy(spread->max)}, {"seeds", spread->seeds}};
}

void add_moment(Json& json, const Moment& moment) {
  json["allocation_pct"] = spread_json(moment.allocation_pct);
  json["frag_pct_of_idle"] = spread_json(moment.frag_pct_of_idle);
  json["frag_pct_of_capacity"] = spread_json(moment.frag_pct_of_capacity);
}

Json summary_json(const PolicySummary& summary) {
  Json at = Json::array();
  for (std::size_t i = 0; i < summary.at.size(); ++i) {
    Json moment = {{"arrived_pct", kMoments[i]}};
    add_moment(moment, summary.at[i]);
    at.push_back(std::move(moment));
  }
  Json final = Json::object();
  add_moment(final, summary.final);
  Json json = {{"trace", summary.trace},
               {"policy", summary.policy},
               {"seeds", summary.seeds},
               {"at", std::move(at)},
               {"final", std::move(final)}};
  if (summary.gangs_placed_pct) json["gangs_placed_pct"] = spread_json(summary.gangs_placed_pct);
  return json;
}

}  // namespace

std::string run_json(const ReplayResult& run, const std::optional<Timings>& timings) {
  Json json = to_json(run);
  if (timings) {
    json["timing"] = {
        {"read_s", timings->read}, {"prepare_s", timings->phases.prepare}, {"replay_s", timings->phases.replay}};
  }
  return to_text(json);
}

std::string run_file(const ReplayResult& run, std::string_view inputs_digest) {
  Json json = to_json(run);
  json[kInputsDigestKey] = inputs_digest;
  json[kDigestKey] = digest_of(json);
  return to_text(json) + "\n";
}

std::optional<StoredRun> parse_run_file(const std::string& text) {
  if (nested_deeper(text)) return std::nullopt;
  try {
    Json json = Json::parse(text);
    const auto digest = json.at(kDigestKey).get<std::string>();
    json.erase(kDigestKey);
    if (digest != digest_of(json)) return std::nullopt;
    return StoredRun{json.at(kInputsDigestKey).get<std::string>(), from_json(json)};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string comparison_json(const Comparison& comparison) {
  Json summaries = Json::array();
  for (const PolicySummary& summary : comparison.summaries) summaries.push_back(summary_json(summary));
  Json runs = Json::array();
  for (const ReplayResult& run : comparison.runs) runs.push_back(to_json(run));
  const Json json = {{"arrival", comparison.arrival}, {"summary", std::move(summaries)}, {"runs", std::move(runs)}};
  return to_text(json);
}

}  // namespace mortise::sim
