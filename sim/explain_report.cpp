#include "sim/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/tables.h"

namespace mortise::sim {

namespace {

using Json = nlohmann::ordered_json;

/// A gang's places are shown as so many lines; all of them are in the JSON.
constexpr std::size_t kShownPlaces = 32;

Json reasons_json(const Answer& answer) {
  Json reasons = Json::array();
  for (const WhyNot& why : answer.reasons) {
    if (answer.ask.is_gang()) {
      reasons.push_back({{"reason", why.reason}, {"detail", why.detail}, {"exact", why.exact}});
    } else {
      reasons.push_back({{"reason", why.reason}, {"nodes", why.nodes}});
    }
  }
  return reasons;
}

Json places_json(const Answer& answer) {
  Json places = Json::array();
  for (const PodPlace& place : answer.places) {
    places.push_back({{"pod", place.pod}, {"node", place.node}, {"devices", place.devices}});
  }
  return places;
}

Json answer_json(const Answer& answer) {
  Json json;
  json[answer.ask.is_gang() ? "gang" : "pod"] = answer.ask.name;
  if (answer.ask.is_gang()) {
    json["convention"] = answer.ask.convention;
    json["members"] = answer.ask.members;
    json["minimum"] = answer.ask.minimum;
  }
  json["fits"] = answer.fits;
  if (answer.fits) {
    if (!answer.level.empty()) {
      json["level"] = answer.level;
      json["domain"] = answer.domain;
      Json spread = Json::array();
      for (const LevelCount& level : answer.domains) {
        spread.push_back({{"level", level.level}, {"domains", level.domains}});
      }
      json["spread"] = std::move(spread);
    }
    json["places"] = places_json(answer);
  }
  if (answer.ask.is_gang()) json["note"] = answer.note.empty() ? Json(nullptr) : Json(answer.note);
  json["reasons"] = reasons_json(answer);
  Json nearest = Json::array();
  for (const Nearest& near : answer.nearest) {
    nearest.push_back({{near.is_node ? "node" : "domain", near.name}, {"missing", near.missing}});
  }
  json["nearest"] = std::move(nearest);
  Json changes = Json::array();
  for (const Change& change : answer.changes) changes.push_back({{"kind", change.kind}, {"detail", change.detail}});
  json["changes"] = std::move(changes);
  return json;
}

std::string heading(const Answer& answer) {
  if (!answer.ask.is_gang()) return fmt::format("pod {}", answer.ask.name);
  return fmt::format("gang {} ({}), {} member{}", answer.ask.name, answer.ask.convention, answer.ask.members,
                     answer.ask.members == 1 ? "" : "s");
}

std::string note_text(const Answer& answer) {
  return answer.note.empty() ? std::string() : "  note: " + answer.note + "\n";
}

std::string fitting_text(const Answer& answer) {
  std::string text = heading(answer);
  if (answer.places.empty()) return text + ": has its place already\n";
  text += ": fits";
  const auto placed = static_cast<std::int64_t>(answer.places.size() + answer.ask.nodes.size());
  if (placed < answer.ask.members) {
    text += fmt::format(" with {} of {} (it needs {})", placed, answer.ask.members,
                        answer.ask.minimum + static_cast<std::int64_t>(answer.ask.nodes.size()));
  }
  if (!answer.level.empty()) {
    text += answer.level == "cluster" ? "" : fmt::format(" in {} {}", answer.level, answer.domain);
    for (const LevelCount& level : answer.domains) {
      text += fmt::format(", {} {}{}", level.domains, level.level, level.domains == 1 ? "" : "s");
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(answer.places.size(), kShownPlaces); ++i) {
    const PodPlace& place = answer.places[i];
    rows.push_back({"  " + place.pod, place.node, place.devices.empty() ? "-" : place.devices});
  }
  text += "\n" + note_text(answer) + align_columns(rows, {false, false, false});
  if (answer.places.size() > kShownPlaces) {
    text += fmt::format("  ... and {} more\n", answer.places.size() - kShownPlaces);
  }
  return text;
}

std::string refused_text(const Answer& answer) {
  std::string text = heading(answer) + ": does not fit\n" + note_text(answer);
  for (const WhyNot& why : answer.reasons) {
    if (answer.ask.is_gang()) {
      text +=
          fmt::format("  {}: {}{}\n", why.reason, why.detail, why.exact ? std::string_view() : placement::kCutShort);
    } else {
      text += fmt::format("  {}: {} node{}\n", why.reason, why.nodes, why.nodes == 1 ? "" : "s");
    }
  }
  for (const Nearest& near : answer.nearest) {
    text += fmt::format("  nearest: {}{} {}\n", near.name, near.is_amount ? " lacks" : ":", near.missing);
  }
  for (const Change& change : answer.changes) text += fmt::format("  would help: {}\n", change.detail);
  return text;
}

}  // namespace

std::string explain_json(const std::vector<Answer>& answers) {
  Json json;
  if (answers.size() == 1) {
    json = answer_json(answers.front());
  } else {
    json["fits"] = std::all_of(answers.begin(), answers.end(), [](const Answer& answer) { return answer.fits; });
    json["answers"] = Json::array();
    for (const Answer& answer : answers) json["answers"].push_back(answer_json(answer));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string explain_text(const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) text += answer.fits ? fitting_text(answer) : refused_text(answer);
  return text;
}

}  // namespace mortise::sim
