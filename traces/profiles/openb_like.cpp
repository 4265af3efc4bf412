#include "traces/profiles/profiles.h"

namespace mortise::traces {

namespace {

// Figures taken from Alibaba cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata): the node list of its 1,213 GPU
// nodes and the default pod list of 8,152 pods, counted into distributions. Classes of pods seen fewer than four or
// five times (two times with several GPUs) are left out; together they are about 1 % of the pods.
constexpr NodeShape kNodes[] = {
    {"G2", 8, 96000, 393216, 549},     {"T4", 2, 104000, 524288, 387},    {"P100", 2, 16000, 122880, 107},
    {"G3", 8, 128000, 786432, 39},     {"V100M16", 4, 32000, 131072, 28}, {"P100", 2, 64000, 262144, 22},
    {"V100M32", 8, 96000, 786432, 21}, {"V100M16", 1, 8000, 32768, 19},   {"T4", 4, 96000, 393216, 17},
    {"V100M32", 4, 48000, 376832, 9},  {"V100M16", 8, 64000, 262144, 7},  {"P100", 1, 8000, 61440, 3},
    {"A10", 1, 128000, 1048576, 2},    {"P100", 2, 8000, 61440, 2},       {"V100M16", 8, 82000, 344064, 1}};
constexpr PodClass kCpuOnly[] = {{0, 12500, 57344, 364}, {0, 32000, 49152, 284}, {0, 8000, 30517, 163},
                                 {0, 15400, 51200, 120}, {0, 16500, 51200, 95},  {0, 8000, 15625, 11},
                                 {0, 11400, 57344, 11},  {0, 16000, 31250, 8},   {0, 8000, 31250, 5}};
constexpr PodClass kShared[] = {
    {810, 3152, 5600, 1047}, {470, 11908, 47104, 388}, {470, 8000, 30517, 360}, {650, 11908, 47104, 237},
    {320, 4000, 22888, 111}, {230, 4000, 30517, 84},   {320, 4000, 15258, 78},  {590, 3152, 5600, 75},
    {320, 8000, 30517, 72},  {550, 4152, 10600, 72},   {160, 4000, 15258, 53},  {460, 6000, 6144, 51},
    {370, 4152, 10600, 45},  {320, 4000, 30517, 43},   {810, 4152, 10600, 31},  {460, 6000, 12288, 29},
    {230, 4000, 22888, 26},  {220, 4000, 15258, 24},   {320, 1000, 2048, 22},   {160, 6000, 22888, 20},
    {220, 8000, 30517, 19},  {230, 8000, 30517, 18},   {460, 6000, 18432, 18},  {480, 4000, 22888, 18},
    {230, 4000, 15258, 12},  {650, 8000, 30517, 12},   {220, 4000, 22888, 11},  {110, 4000, 22888, 9},
    {460, 6000, 8192, 9},    {110, 4000, 15258, 8},    {220, 4000, 30517, 8},   {330, 4000, 22888, 7},
    {460, 6000, 16384, 7},   {350, 4000, 22888, 6},    {460, 6000, 23552, 6},   {460, 12000, 18432, 6},
    {50, 6000, 22888, 4},    {110, 6000, 22888, 4},    {270, 4152, 10600, 4}};
constexpr PodClass kOneGpu[] = {
    {1000, 11300, 49152, 857}, {1000, 11400, 48128, 534}, {1000, 3152, 5600, 470},   {1000, 18708, 64512, 255},
    {1000, 9810, 41560, 195},  {1000, 12000, 24576, 158}, {1000, 15700, 58368, 158}, {1000, 11908, 47104, 153},
    {1000, 16000, 32768, 108}, {1000, 4000, 24576, 104},  {1000, 8000, 16384, 104},  {1000, 12000, 16384, 99},
    {1000, 14200, 58368, 93},  {1000, 24200, 93184, 84},  {1000, 11400, 77824, 65},  {1000, 8000, 32768, 55},
    {1000, 11900, 77824, 51},  {1000, 12000, 15360, 44},  {1000, 8200, 33792, 41},   {1000, 4000, 31250, 40},
    {1000, 15200, 80896, 36},  {1000, 16000, 65536, 33},  {1000, 16400, 125952, 27}, {1000, 11300, 37888, 16},
    {1000, 1000, 6144, 15},    {1000, 7000, 30000, 11},   {1000, 15400, 90112, 9},   {1000, 4000, 16384, 8},
    {1000, 12000, 32768, 8},   {1000, 12000, 47104, 8},   {1000, 14900, 73728, 8},   {1000, 6000, 32768, 6},
    {1000, 9400, 52224, 6},    {1000, 2000, 16384, 5},    {1000, 4000, 32768, 5}};
constexpr PodClass kTwoGpus[] = {
    {1000, 16200, 66560, 7}, {1000, 6000, 65536, 3}, {1000, 30200, 160768, 3}, {1000, 17400, 43008, 2}};
constexpr PodClass kFourGpus[] = {{1000, 32200, 132096, 9}, {1000, 32000, 131072, 3}, {1000, 60200, 320512, 3}};
constexpr PodClass kEightGpus[] = {{1000, 64200, 263168, 18},
                                   {1000, 88000, 327680, 18},
                                   {1000, 64000, 262144, 3},
                                   {1000, 120000, 737280, 3},
                                   {1000, 120200, 640000, 2}};
constexpr LabelShare kCpuOnlyEnded[] = {{"Running", 1044}, {"Succeeded", 7}, {"Failed", 1}};
constexpr LabelShare kSharedEnded[] = {{"Running", 1412}, {"Failed", 1161}};
constexpr LabelShare kOneGpuEnded[] = {{"Running", 2726}, {"Failed", 652}, {"Succeeded", 178}};
constexpr LabelShare kTwoGpusEnded[] = {{"Failed", 9}, {"Running", 6}};
constexpr LabelShare kFourGpusEnded[] = {{"Failed", 14}, {"Running", 1}};
constexpr LabelShare kEightGpusEnded[] = {{"Failed", 33}, {"Succeeded", 7}, {"Running", 4}};
constexpr LabelShare kCpuOnlyQos[] = {{"LS", 636}, {"BE", 450}, {"Guaranteed", 1}, {"Burstable", 1}};
constexpr LabelShare kSharedQos[] = {{"BE", 2319}, {"LS", 759}};
constexpr LabelShare kOneGpuQos[] = {{"LS", 3200}, {"BE", 629}, {"Burstable", 76}, {"Guaranteed", 6}};
constexpr LabelShare kTwoGpusQos[] = {{"LS", 15}, {"Burstable", 1}};
constexpr LabelShare kFourGpusQos[] = {{"LS", 14}, {"Burstable", 1}};
constexpr LabelShare kEightGpusQos[] = {{"LS", 23}, {"Burstable", 21}};
constexpr Quantile kCpuOnlyDurations[] = {
    {0, 33},       {100, 59},     {500, 94},     {1000, 141},   {2000, 147},     {2500, 151},     {3000, 175},
    {4000, 273},   {5000, 496},   {6000, 804},   {7000, 1449},  {7500, 1947},    {8000, 2599},    {9000, 13219},
    {9500, 19815}, {9800, 25130}, {9900, 28362}, {9950, 55452}, {9980, 1276174}, {9990, 3940683}, {10000, 10143284}};
constexpr Quantile kSharedDurations[] = {
    {0, 4},        {100, 14},     {500, 35},     {1000, 55},     {2000, 103},     {2500, 144},     {3000, 174},
    {4000, 289},   {5000, 539},   {6000, 928},   {7000, 1281},   {7500, 1858},    {8000, 2879},    {9000, 9235},
    {9500, 20153}, {9800, 49516}, {9900, 75954}, {9950, 193496}, {9980, 3238836}, {9990, 3425986}, {10000, 12475899}};
constexpr Quantile kOneGpuDurations[] = {
    {0, 5},        {100, 34},     {500, 56},      {1000, 80},      {2000, 177},     {2500, 208},     {3000, 251},
    {4000, 459},   {5000, 758},   {6000, 1210},   {7000, 1972},    {7500, 2460},    {8000, 3536},    {9000, 6030},
    {9500, 13217}, {9800, 57462}, {9900, 236343}, {9950, 2039802}, {9980, 4822049}, {9990, 8795832}, {10000, 12537496}};
// The 31 pods with 2 and 4 GPUs are too few to be told apart.
constexpr Quantile kFewGpusDurations[] = {{0, 22},       {1000, 36},    {2500, 40},    {4000, 548},
                                          {5000, 952},   {6000, 2267},  {7500, 4319},  {8500, 14526},
                                          {9000, 23925}, {9500, 44259}, {9750, 44259}, {10000, 912663}};
constexpr Quantile kEightGpusDurations[] = {{0, 58},        {1000, 136},    {2500, 255},    {4000, 482},
                                            {5000, 553},    {6000, 958},    {7500, 9106},   {8500, 68494},
                                            {9000, 101998}, {9500, 209987}, {9750, 977323}, {10000, 1332357}};
constexpr Quantile kUnstartedLives[] = {{0, 0},       {500, 6},     {1000, 22},   {2500, 50},
                                        {5000, 94},   {7500, 161},  {9000, 338},  {9500, 600},
                                        {9800, 1151}, {9900, 2075}, {9950, 2388}, {10000, 11717}};
constexpr Quantile kWaits[] = {{0, 0},       {3000, 1},    {5000, 2},     {6400, 5},   {6600, 24},
                               {8400, 38},   {9000, 106},  {9500, 241},   {9800, 490}, {9900, 874},
                               {9950, 1677}, {9990, 4492}, {10000, 14330}};
constexpr PodGroup kPods[] = {{0, 1088, kCpuOnly, 36, kCpuOnlyEnded, kCpuOnlyQos, kCpuOnlyDurations},
                              {1, 3078, kShared, 505, kSharedEnded, kSharedQos, kSharedDurations},
                              {1, 3911, kOneGpu, 355, kOneGpuEnded, kOneGpuQos, kOneGpuDurations},
                              {2, 16, kTwoGpus, 1, kTwoGpusEnded, kTwoGpusQos, kFewGpusDurations},
                              {4, 15, kFourGpus, 0, kFourGpusEnded, kFourGpusQos, kFewGpusDurations},
                              {8, 44, kEightGpus, 0, kEightGpusEnded, kEightGpusQos, kEightGpusDurations}};

}  // namespace

constinit const SynthProfile kOpenbLike = {
    .name = "openb",
    .description = "nodes and pods like Alibaba cluster-trace-gpu-v2023: mostly pods of one GPU or a share of one",
    .nodes = kNodes,
    .pods = kPods,
    .waits = kWaits,
    .unstarted_lives = kUnstartedLives,
    .unstarted_status = "Pending",
};

}  // namespace mortise::traces
