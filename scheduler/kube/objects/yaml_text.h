#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// Gets one document and the line its content starts on; an error ends the reading.
using DocumentSink = std::function<Status(const nlohmann::json& document, int line)>;

/// Hands each document of a YAML stream on as the JSON value it stands for. Quoted scalars are strings; plain ones
/// are null, true, false or a number where YAML 1.2's core schema and JSON agree that they are, else strings.
/// Aliases are refused: a few lines of them can stand for any amount of text.
Status read_yaml_text(const std::string& text, std::string_view file, const DocumentSink& use);

}  // namespace mortise::kube
