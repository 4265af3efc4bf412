#include "traces/formats.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <streambuf>
#include <utility>

#include "traces/openb.h"

namespace mortise::traces {

namespace {

bool is_openb(std::string_view first_line) {
  // Two telling columns are enough: what else is wrong with the header is the reader's to say.
  return first_line.find("cpu_milli") != std::string_view::npos && first_line.find("num_gpu") != std::string_view::npos;
}

constexpr TraceFormat kFormats[] = {
    {"openb",
     "pod list of Alibaba cluster-trace-gpu-v2023: a CSV file with name,cpu_milli,memory_mib,num_gpu,gpu_milli,...",
     is_openb, read_openb},
};

/// Puts a line that was read to find the format back before the rest, so that pipes need no seeking.
class RejoinedBuffer : public std::streambuf {
 public:
  RejoinedBuffer(std::string head, std::streambuf* rest) : buffer_(std::move(head)), rest_(rest) {
    setg(buffer_.data(), buffer_.data(), buffer_.data() + buffer_.size());
  }

 protected:
  int_type underflow() override {
    constexpr std::streamsize kChunk = 1 << 16;
    buffer_.resize(kChunk);
    const std::streamsize got = rest_->sgetn(buffer_.data(), kChunk);
    if (got <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(buffer_.front());
  }

 private:
  std::string buffer_;
  std::streambuf* rest_;
};

}  // namespace

std::span<const TraceFormat> trace_formats() {
  return kFormats;
}

Result<Trace> read_trace(std::istream& in, const std::string& file_name) {
  std::string first_line;
  if (!std::getline(in, first_line)) {
    return Error{file_name + (in.bad() ? ": cannot be read" : ": the file is empty; allowed: a trace")};
  }
  for (const TraceFormat& format : trace_formats()) {
    if (!format.detect(first_line)) continue;
    if (!in.eof()) first_line += '\n';
    RejoinedBuffer whole(std::move(first_line), in.rdbuf());
    std::istream again(&whole);
    return format.read(again, file_name);
  }
  std::string known;
  for (const TraceFormat& format : trace_formats()) {
    known.append(known.empty() ? "" : "; ").append(format.name).append(" (").append(format.description).append(")");
  }
  return Error{file_name + ":1: unknown trace format; known: " + known};
}

Result<Trace> read_trace_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{path + ": cannot be opened: " + std::strerror(errno)};
  return read_trace(in, path);
}

}  // namespace mortise::traces
