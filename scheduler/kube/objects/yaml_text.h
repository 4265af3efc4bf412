#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace YAML {
class Exception;
}

namespace mortise::kube {

/// Gets one document and the line its content starts on; an error ends the reading.
using DocumentSink = std::function<Status(const nlohmann::json& document, int line)>;

/// Hands each document of a YAML stream on as the JSON value it stands for. Quoted scalars are strings; plain ones
/// are null, true, false or a number where YAML 1.2's core schema and JSON agree that they are, else strings.
/// Aliases are refused: a few lines of them can stand for any amount of text. So is what is not UTF-8.
Status read_yaml_text(const std::string& text, std::string_view file, const DocumentSink& use);

/// What yaml-cpp complains of, in one line, without the place.
std::string yaml_mistake(const YAML::Exception& mistake);

}  // namespace mortise::kube
