#include "scheduler/kube/objects/gpu_samples.h"

#include <gtest/gtest.h>

namespace mortise::kube {
namespace {

std::string answer(const std::string& result) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}

std::string series(const std::string& labels, const std::string& value = R"([1748779290.5,"1748779288.25"])") {
  return R"({"metric":{)" + labels + R"(},"value":)" + value + "}";
}

TEST(GpuSamples, TheLabelsOfTheExporterAndTheTimeOfTheScrape) {
  const auto samples = parse_gpu_samples(answer(
      series(R"("gpu":"3","UUID":"GPU-1","device":"nvidia3","Hostname":"node-a","container":"main","namespace":"ml",
                "pod":"train-0","pod_uid":"")")));
  ASSERT_TRUE(samples.ok()) << samples.message();
  ASSERT_EQ(samples->size(), 1U);
  const GpuSample& sample = samples->front();
  EXPECT_EQ(sample.nodes, std::vector<std::string>{"node-a"});
  EXPECT_EQ(sample.gpu, 3);
  EXPECT_EQ(sample.ns, "ml");
  EXPECT_EQ(sample.pod, "train-0");
  EXPECT_EQ(sample.pod_uid, "");
  EXPECT_EQ(sample.at, 1748779288 * kSecond + kSecond / 4);
}

// A scrape without honor_labels: pod and namespace are the exporter's own.
TEST(GpuSamples, RenamedLabelsGoFirst) {
  const auto samples = parse_gpu_samples(answer(
      series(R"("gpu":"0","Hostname":"exporter-7x2","node":"node-a","namespace":"monitoring","pod":"exporter-7x2",
                "exported_namespace":"ml","exported_pod":"train-0","pod_uid":"u-1")")));
  ASSERT_TRUE(samples.ok()) << samples.message();
  EXPECT_EQ(samples->front().ns, "ml");
  EXPECT_EQ(samples->front().pod, "train-0");
  EXPECT_EQ(samples->front().pod_uid, "u-1");
  EXPECT_EQ(samples->front().nodes, (std::vector<std::string>{"exporter-7x2", "node-a"}));
}

TEST(GpuSamples, SeriesThatNameNoWholeGpuOfAPodAreLeftOut) {
  const auto samples = parse_gpu_samples(answer(
      series(R"("gpu":"0","Hostname":"a")") + "," + series(R"("gpu":"0","Hostname":"a","pod":"","namespace":"")") +
      "," + series(R"("gpu":"0","GPU_I_ID":"7","Hostname":"a","pod":"p","namespace":"n")") + "," +
      series(R"("gpu":"-1","pod":"p","namespace":"n")") + "," + series(R"("gpu":"128","pod":"p","namespace":"n")") +
      "," + series(R"("gpu":"one","pod":"p","namespace":"n")") + "," + series(R"("pod":"p","namespace":"n")")));
  ASSERT_TRUE(samples.ok()) << samples.message();
  EXPECT_TRUE(samples->empty());
}

TEST(GpuSamples, AnswersOfAnotherFormAreErrorsOfOneLine) {
  const auto why = [](const std::string& text) { return parse_gpu_samples(text).message(); };
  EXPECT_EQ(why(R"({"status":"error","errorType":"timeout","error":"query timed\nout"})"),
            R"(status is "error": "query timed\x0aout")");
  EXPECT_EQ(why(R"({"status":"success","data":{"resultType":"matrix","result":[]}})"),
            R"(data.resultType is "matrix"; allowed: vector)");
  EXPECT_EQ(why("{}"), R"(status is "": "")");
  EXPECT_EQ(why(R"({"status":"success"})"), R"(data.resultType is ""; allowed: vector)");
  EXPECT_EQ(why(answer(series(R"("gpu":"0","pod":"p")", R"([1,"NaN"])"))), R"(a value is "NaN", which is no time)");
  EXPECT_EQ(why(answer(series(R"("gpu":"0","pod":"p")", R"([1])"))), R"(a value is "", which is no time)");
  EXPECT_EQ(why(answer(series(R"("gpu":"0","pod":"p")", R"([1,"1e30"])"))), R"(a value is "1e30", which is no time)");
  for (const char* text : {"", "<html>", "[]", "null", R"({"status":7})", R"({"status":"success","data":[]})",
                           R"({"status":"success","data":{"resultType":"vector","result":{}}})",
                           R"({"status":"success","data":{"resultType":"vector","result":[7]}})",
                           R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"gpu":0}}]}})"}) {
    EXPECT_FALSE(parse_gpu_samples(text).ok()) << text;
    EXPECT_EQ(why(text).find('\n'), std::string::npos) << text;
  }
}

TEST(GpuSamples, AnswersThatWouldTakeMuchMoreMemoryThanTheyHaveBytesAreRefused) {
  const auto why = [](const std::string& text) { return parse_gpu_samples(text).message(); };
  EXPECT_EQ(why(std::string(1'000'000, '[')), "nested deeper than 16 levels");
  EXPECT_EQ(why(answer(std::string(16, '[') + std::string(16, ']'))), "nested deeper than 16 levels");
  std::string many;
  for (int i = 0; i < 2'000'000; ++i) many += "{},";
  EXPECT_EQ(why(answer(many + "{}")), "more than 2000000 values");
}

}  // namespace
}  // namespace mortise::kube
