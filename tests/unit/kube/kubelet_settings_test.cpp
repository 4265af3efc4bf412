#include "scheduler/kube/objects/kubelet_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mortise::kube {
namespace {

using placement::AssignmentMode;
using testing::ElementsAre;
using testing::HasSubstr;
using topology::TopologyPolicy;
using topology::TopologyScope;

KubeletSettings read(std::string_view text) {
  const auto settings = parse_kubelet_settings(text);
  if (!settings) {
    ADD_FAILURE() << settings.message();
    return {};
  }
  return *settings;
}

std::string refusal(std::string_view text) {
  const auto settings = parse_kubelet_settings(text);
  return settings ? "accepted" : settings.message();
}

std::string cpus_text(const topology::IndexSet& cpus) {
  std::string text;
  cpus.for_each([&](std::size_t cpu) { text += (text.empty() ? "" : " ") + std::to_string(cpu); });
  return text;
}

TEST(KubeletSettingsOf, EveryKey) {
  const KubeletSettings settings = read(
      "policy=restricted,scope=pod,options=prefer-closest-numa-nodes:true;max-allowable-numa-nodes:16,"
      "cpu=static,cpu-options=full-pcpus-only:true;strict-cpu-reservation:true,reserved-cpus=0-1;40,"
      "memory=Static,reserved-memory=0:1Gi;2:512Mi,version=v1.35.2,mode=enforced");
  EXPECT_EQ(settings.facts.policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(settings.facts.scope, TopologyScope::kPod);
  EXPECT_EQ(settings.facts.max_numa_nodes, 16);
  EXPECT_TRUE(settings.config.prefer_closest);
  EXPECT_TRUE(settings.config.cpu_static);
  EXPECT_TRUE(settings.config.cpu.full_pcpus_only);
  EXPECT_EQ(cpus_text(settings.reserved_cpus.value()), "0 1 40");
  EXPECT_TRUE(settings.config.memory_static);
  EXPECT_THAT(settings.reserved_memory.value(), ElementsAre(Bytes{1} << 30, 0, Bytes{1} << 29));
  // Device hints range over all NUMA nodes before 1.36.
  EXPECT_FALSE(settings.rules.value().device_nodes_only);
  EXPECT_EQ(settings.mode, AssignmentMode::kEnforced);
}

TEST(KubeletSettingsOf, WhatIsNotSaidStaysOpen) {
  const KubeletSettings settings = read("policy=none");
  EXPECT_EQ(settings.facts.policy, TopologyPolicy::kNone);
  EXPECT_FALSE(settings.facts.scope.has_value());
  EXPECT_FALSE(settings.config.cpu_static);
  EXPECT_FALSE(settings.reserved_cpus.has_value());
  EXPECT_FALSE(settings.rules.has_value());
  EXPECT_FALSE(settings.mode.has_value());
}

TEST(KubeletSettingsOf, BlanksAroundPartsDoNotMatter) {
  const KubeletSettings settings = read(" policy = best-effort ,\n scope=container, reserved-cpus = 0 ; 2 ");
  EXPECT_EQ(settings.facts.policy, TopologyPolicy::kBestEffort);
  EXPECT_EQ(settings.facts.scope, TopologyScope::kContainer);
  EXPECT_EQ(refusal("reserved-cpus=0-1;4"), "accepted");
}

TEST(KubeletSettingsOf, MistakesSayWhatIsAllowed) {
  EXPECT_EQ(refusal("polcy=restricted"),
            "unknown key \"polcy\"; known: policy, scope, options, cpu, cpu-options, reserved-cpus, memory, "
            "reserved-memory, version, mode");
  EXPECT_EQ(refusal("policy=strict"),
            "policy: unknown topology manager policy \"strict\"; known: none, best-effort, restricted, "
            "single-numa-node");
  EXPECT_EQ(refusal("scope=node"), "scope: unknown topology manager scope \"node\"; known: container, pod");
  EXPECT_EQ(refusal(""), "\"\" is no KEY=VALUE");
  EXPECT_EQ(refusal("policy=none,"), "\"\" is no KEY=VALUE");
  EXPECT_EQ(refusal("restricted"), "\"restricted\" is no KEY=VALUE");
  EXPECT_EQ(refusal("policy=none,policy=none"), "key \"policy\" stands there twice");
  EXPECT_EQ(refusal("cpu=dynamic"), "cpu: is \"dynamic\"; allowed: none, static");
  EXPECT_EQ(refusal("memory=yes"), "memory: is \"yes\"; allowed: none, static");
  EXPECT_EQ(refusal("mode=strict"), "mode: is \"strict\"; allowed: predicted, enforced");
  EXPECT_THAT(refusal("version=latest"), HasSubstr("version: \"latest\" is not a kubelet release like 1.36"));
  EXPECT_THAT(refusal("options=closest:true"),
              HasSubstr("options: unknown topology manager option \"closest\"; known:"));
  EXPECT_THAT(refusal("options=max-allowable-numa-nodes:4"), HasSubstr("allowed: whole numbers from 8"));
  EXPECT_EQ(refusal("options=prefer-closest-numa-nodes"),
            "options: is \"prefer-closest-numa-nodes\"; allowed: NAME:VALUE;...");
  EXPECT_THAT(refusal("cpu-options=full:true"), HasSubstr("cpu-options: unknown CPU manager option \"full\"; known:"));
  EXPECT_THAT(refusal("reserved-cpus=0..3"), HasSubstr("reserved-cpus: bad CPU list"));
  EXPECT_EQ(refusal("reserved-cpus=0-1024"), "reserved-cpus: names CPU 1024; allowed: 0 to 1023");
  EXPECT_EQ(refusal("reserved-memory=1Gi"), "reserved-memory: is \"1Gi\"; allowed: NUMA:QUANTITY;...");
  EXPECT_EQ(refusal("reserved-memory=64:1Gi"), "reserved-memory: names NUMA node \"64\"; allowed: 0 to 63");
  EXPECT_EQ(refusal("reserved-memory=0:1Gi;0:2Gi"), "reserved-memory: names NUMA node 0 twice");
  EXPECT_EQ(refusal("reserved-memory=0:-1"), "reserved-memory: is \"-1\"; allowed: amounts from 0");
  EXPECT_THAT(refusal("reserved-memory=0:lots"), HasSubstr("reserved-memory: "));
  EXPECT_THAT(refusal("policy=a\nb%c"), testing::AllOf(testing::Not(HasSubstr("\n")), testing::Not(HasSubstr("%"))));
}

}  // namespace
}  // namespace mortise::kube
