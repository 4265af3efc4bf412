package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	cputopology "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// The exported constructor listens on kubelet's own socket path; this one takes a path.
//
//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(logger klog.Logger, socketPath string, topology []cadvisorapi.Node, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

const (
	podUID         = "pod"
	otherUID       = "other"
	mebibyte       = 1 << 20
	hugePage       = "hugepages-2Mi"
	checkpointFile = "kubelet_internal_checkpoint" // the device manager's file, a constant of its package
)

// errRedraw says that a case is of no use: kubelet would walk through more combinations of hints than the caller allows,
// or would not start.
var errRedraw = errors.New("draw another case")

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// machineInfo gives every NUMA node a reserved mebibyte, because the memory manager insists on a reservation.
func machineInfo(node *Node) *cadvisorapi.MachineInfo {
	info := &cadvisorapi.MachineInfo{NumSockets: len(node.Sockets)}
	groupOf := func(groups []string) map[int]int {
		result := map[int]int{}
		for i, group := range groups {
			for _, cpu := range must(cpuset.Parse(group)).List() {
				result[cpu] = i
			}
		}
		return result
	}
	sockets, caches := groupOf(node.Sockets), groupOf(node.Caches)
	for _, numa := range node.NUMA {
		cpus := must(cpuset.Parse(numa.CPUs))
		info.NumCores += cpus.Size()
		topology := cadvisorapi.Node{Id: numa.ID, Memory: numa.Memory["memory"] + mebibyte, Distances: numa.Distances}
		if pages, known := numa.Memory[hugePage]; known {
			topology.Memory += pages
			topology.HugePages = []cadvisorapi.HugePagesInfo{{PageSize: 2048, NumPages: pages / (2 * mebibyte)}}
		}
		for _, core := range node.Cores {
			threads := must(cpuset.Parse(core)).List()
			if !cpus.Contains(threads[0]) {
				continue
			}
			entry := cadvisorapi.Core{Id: threads[0], Threads: threads, SocketID: sockets[threads[0]]}
			if len(node.Caches) > 0 {
				entry.UncoreCaches = []cadvisorapi.Cache{{Id: caches[threads[0]], Level: 3}}
			}
			topology.Cores = append(topology.Cores, entry)
		}
		info.Topology = append(info.Topology, topology)
	}
	return info
}

// cpuProvider makes a hint provider of the static policy, which kubelet's manager wraps in the same way.
type cpuProvider struct {
	policy cpumanager.Policy
	state  cpustate.State
}

func (p cpuProvider) GetTopologyHints(pod *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return p.policy.GetTopologyHints(klog.TODO(), p.state, pod, c)
}
func (p cpuProvider) GetPodTopologyHints(pod *v1.Pod) map[string][]topologymanager.TopologyHint {
	return p.policy.GetPodTopologyHints(klog.TODO(), p.state, pod)
}
func (p cpuProvider) Allocate(pod *v1.Pod, c *v1.Container) error {
	return p.policy.Allocate(klog.TODO(), p.state, pod, c)
}
func (p cpuProvider) AllocatePod(pod *v1.Pod) error {
	return p.policy.AllocatePod(klog.TODO(), p.state, pod)
}

type memoryProvider struct {
	policy memorymanager.Policy
	state  memorystate.State
}

func (p memoryProvider) GetTopologyHints(pod *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return p.policy.GetTopologyHints(klog.TODO(), p.state, pod, c)
}
func (p memoryProvider) GetPodTopologyHints(pod *v1.Pod) map[string][]topologymanager.TopologyHint {
	return p.policy.GetPodTopologyHints(klog.TODO(), p.state, pod)
}
func (p memoryProvider) Allocate(pod *v1.Pod, c *v1.Container) error {
	return p.policy.Allocate(klog.TODO(), p.state, pod, c)
}
func (p memoryProvider) AllocatePod(pod *v1.Pod) error {
	return p.policy.AllocatePod(klog.TODO(), p.state, pod)
}

// counter multiplies the lengths of the hint lists that pass through; the last provider of the chain checks the limit.
type counter struct {
	product, biggest, limit float64
}

type countingProvider struct {
	topologymanager.HintProvider
	counter     *counter
	first, last bool
}

func (p countingProvider) count(hints map[string][]topologymanager.TopologyHint) map[string][]topologymanager.TopologyHint {
	if p.first {
		p.counter.product = 1
	}
	for _, list := range hints {
		if len(list) > 0 {
			p.counter.product *= float64(len(list))
		}
	}
	if p.last {
		p.counter.biggest = max(p.counter.biggest, p.counter.product)
		if p.counter.product > p.counter.limit {
			panic(errRedraw)
		}
	}
	return hints
}

func (p countingProvider) GetTopologyHints(pod *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return p.count(p.HintProvider.GetTopologyHints(pod, c))
}
func (p countingProvider) GetPodTopologyHints(pod *v1.Pod) map[string][]topologymanager.TopologyHint {
	return p.count(p.HintProvider.GetPodTopologyHints(pod))
}

// fakePlugin is a device plugin in this process: it allocates whatever it is asked to and prefers its ranking.
type fakePlugin struct {
	resource string
	prefer   []string
}

func (p *fakePlugin) API() pluginapi.DevicePluginClient { return p }
func (p *fakePlugin) Resource() string                  { return p.resource }
func (p *fakePlugin) SocketPath() string                { return "" }

func (p *fakePlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty, ...grpc.CallOption) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: len(p.prefer) > 0}, nil
}
func (p *fakePlugin) ListAndWatch(context.Context, *pluginapi.Empty, ...grpc.CallOption) (grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse], error) {
	return nil, errors.New("devices are handed over directly")
}
func (p *fakePlugin) Allocate(context.Context, *pluginapi.AllocateRequest, ...grpc.CallOption) (*pluginapi.AllocateResponse, error) {
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{}}}, nil
}
func (p *fakePlugin) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest, ...grpc.CallOption) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}
func (p *fakePlugin) GetPreferredAllocation(_ context.Context, in *pluginapi.PreferredAllocationRequest, _ ...grpc.CallOption) (*pluginapi.PreferredAllocationResponse, error) {
	request := in.ContainerRequests[0]
	wish := sets.New(request.MustIncludeDeviceIDs...)
	available := sets.New(request.AvailableDeviceIDs...)
	for _, id := range p.prefer {
		if wish.Len() >= int(request.AllocationSize) {
			break
		}
		if available.Has(id) {
			wish.Insert(id)
		}
	}
	return &pluginapi.PreferredAllocationResponse{
		ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{{DeviceIDs: sets.List(wish)}},
	}, nil
}

type alwaysReady struct{}

func (alwaysReady) AddSource(string) {}
func (alwaysReady) AllReady() bool   { return true }

func checkpointEntry(uid, container, resource string, ids []string, node *Node) checkpoint.PodDevicesEntry {
	byNUMA := checkpoint.NewDevicesPerNUMA()
	for _, id := range ids {
		nodes := []int{-1}
		for _, device := range node.Devices[resource].Devices {
			if device.ID == id && len(device.NUMA) > 0 {
				nodes = device.NUMA
			}
		}
		for _, numa := range nodes {
			byNUMA[int64(numa)] = append(byNUMA[int64(numa)], id)
		}
	}
	response := must(proto.Marshal(&pluginapi.ContainerAllocateResponse{}))
	return checkpoint.PodDevicesEntry{PodUID: uid, ContainerName: container, ResourceName: resource, DeviceIDs: byNUMA, AllocResp: response}
}

// startDevices runs the real device manager; what is already allocated reaches it through its checkpoint file.
func startDevices(c *Case, dir string, info *cadvisorapi.MachineInfo, store topologymanager.Store, pods []*v1.Pod) *devicemanager.ManagerImpl {
	check(os.RemoveAll(filepath.Join(dir, checkpointFile)))
	var entries []checkpoint.PodDevicesEntry
	held := map[string]sets.Set[string]{}
	for container, assigned := range c.Assigned {
		for resource, ids := range assigned.Devices {
			entries = append(entries, checkpointEntry(podUID, container, resource, ids, c.Node))
			if held[resource] == nil {
				held[resource] = sets.New[string]()
			}
			held[resource].Insert(ids...)
		}
	}
	for resource, list := range c.Node.Devices {
		var ids []string
		for _, device := range list.Devices {
			if device.Allocated && !held[resource].Has(device.ID) {
				ids = append(ids, device.ID)
			}
		}
		if len(ids) > 0 {
			entries = append(entries, checkpointEntry(otherUID, "main", resource, ids, c.Node))
		}
	}
	files := must(checkpointmanager.NewCheckpointManager(dir))
	check(files.CreateCheckpoint(checkpointFile, checkpoint.New(entries, map[string][]string{})))

	logger := klog.TODO()
	manager := must(newManagerImpl(logger, filepath.Join(dir, "kubelet.sock"), info.Topology, store))
	active := func() []*v1.Pod { return pods }
	check(manager.Start(logger, active, alwaysReady{}, containermap.NewContainerMap(), sets.New[string]()))
	for resource, list := range c.Node.Devices {
		check(manager.PluginConnected(context.Background(), resource, &fakePlugin{resource, list.Prefer}))
		response := &pluginapi.ListAndWatchResponse{}
		for _, device := range list.Devices {
			health := pluginapi.Healthy
			if !device.Healthy {
				health = pluginapi.Unhealthy
			}
			entry := &pluginapi.Device{ID: device.ID, Health: health}
			if device.NUMA != nil {
				entry.Topology = &pluginapi.TopologyInfo{}
				for _, numa := range device.NUMA {
					entry.Topology.Nodes = append(entry.Topology.Nodes, &pluginapi.NUMANode{ID: int64(numa)})
				}
			}
			response.Devices = append(response.Devices, entry)
		}
		manager.PluginListAndWatchReceiver(logger, resource, response)
	}
	return manager
}

func startCPUs(c *Case, info *cadvisorapi.MachineInfo, store topologymanager.Store) cpuProvider {
	logger := klog.TODO()
	topology := must(cputopology.Discover(logger, info))
	reserved := must(cpuset.Parse(c.Node.ReservedCPUs))
	policy := must(cpumanager.NewStaticPolicy(logger, topology, reserved.Size(), reserved, store, c.CPUOptions))
	state := cpustate.NewMemoryState(logger)
	exclusive := must(cpuset.Parse(c.Node.ExclusiveCPUs))
	assignments := cpustate.ContainerCPUAssignments{otherUID: {"main": exclusive}, podUID: {}}
	shared := topology.CPUDetails.CPUs().Difference(exclusive)
	for container, assigned := range c.Assigned {
		if assigned.CPUs != "" {
			cpus := must(cpuset.Parse(assigned.CPUs))
			assignments[podUID][container] = cpus
			shared = shared.Difference(cpus)
		}
	}
	if c.CPUOptions["strict-cpu-reservation"] == "true" {
		shared = shared.Difference(reserved)
	}
	if shared.IsEmpty() {
		panic(errRedraw)
	}
	state.SetDefaultCPUSet(shared)
	state.SetCPUAssignments(assignments)
	check(policy.Start(logger, state))
	return cpuProvider{policy, state}
}

// applyBlock does to a machine state what an allocation of the block does; the policy's own check at its start says
// whether it was done rightly.
func applyBlock(machine memorystate.NUMANodeMap, block memorystate.Block) {
	missing := block.Size
	for _, id := range block.NUMAAffinity {
		machine[id].NumberOfAssignments++
		machine[id].Cells = append([]int{}, block.NUMAAffinity...)
		table := machine[id].MemoryMap[block.Type]
		taken := min(missing, table.Free)
		table.Free -= taken
		table.Reserved += taken
		missing -= taken
	}
}

func startMemory(c *Case, info *cadvisorapi.MachineInfo, store topologymanager.Store) memoryProvider {
	logger := klog.TODO()
	reserved := map[int]map[v1.ResourceName]uint64{}
	for _, numa := range info.Topology {
		reserved[numa.Id] = map[v1.ResourceName]uint64{v1.ResourceMemory: mebibyte}
	}
	policy := must(memorymanager.NewPolicyStatic(logger, info, reserved, store))
	state := memorystate.NewMemoryState(logger)
	check(policy.Start(logger, state)) // fills in the empty machine
	machine := state.GetMachineState()
	assignments := memorystate.ContainerMemoryAssignments{otherUID: {}, podUID: {}}
	add := func(uid, container string, block Block) {
		entry := memorystate.Block{NUMAAffinity: block.NUMA, Type: v1.ResourceName(block.Type), Size: block.Size}
		applyBlock(machine, entry)
		assignments[uid][container] = append(assignments[uid][container], entry)
	}
	for i, block := range c.Node.MemoryBlocks {
		add(otherUID, fmt.Sprintf("c%d", i), block)
	}
	for container, assigned := range c.Assigned {
		for _, block := range assigned.Memory {
			add(podUID, container, block)
		}
	}
	state.SetMachineState(machine)
	state.SetMemoryAssignments(assignments)
	check(policy.Start(logger, state))
	return memoryProvider{policy, state}
}

func nodesOf(hint topologymanager.TopologyHint) []int {
	if hint.NUMANodeAffinity == nil {
		return nil
	}
	return hint.NUMANodeAffinity.GetBits()
}

// ask lets kubelet's managers decide a case. More than `limit` combinations of hints: errRedraw.
func ask(c *Case, dir string, limit float64) (answer Answer, biggest float64, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			if problem != errRedraw {
				panic(fmt.Sprintf("case %d: %v", c.ID, problem))
			}
			err = errRedraw
		}
	}()
	info := machineInfo(c.Node)
	manager := must(topologymanager.NewManager(info.Topology, c.Policy, c.Scope, c.Options))
	pod := &v1.Pod{Spec: *c.Pod}
	pod.UID, pod.Name = types.UID(podUID), podUID
	other := &v1.Pod{}
	other.UID, other.Name = types.UID(otherUID), otherUID

	devices := startDevices(c, dir, info, manager, []*v1.Pod{pod, other})
	defer func() { check(devices.Stop(klog.TODO())) }()
	providers := []topologymanager.HintProvider{devices}
	var cpus *cpuProvider
	var memory *memoryProvider
	if c.CPU == "static" {
		started := startCPUs(c, info, manager)
		cpus = &started
		providers = append(providers, started)
	}
	if c.Memory == "Static" {
		started := startMemory(c, info, manager)
		memory = &started
		providers = append(providers, started)
	}
	count := &counter{limit: limit}
	for i, provider := range providers {
		manager.AddHintProvider(klog.TODO(), countingProvider{provider, count, i == 0, i == len(providers)-1})
	}
	result := manager.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
	answer = Answer{ID: c.ID, Admit: result.Admit, Reason: result.Reason, Message: result.Message}
	if !result.Admit {
		return answer, count.biggest, nil
	}
	for _, container := range append(append([]v1.Container{}, c.Pod.InitContainers...), c.Pod.Containers...) {
		answer.Containers = append(answer.Containers, holdings(container.Name, manager, devices, cpus, memory))
	}
	return answer, count.biggest, nil
}

func holdings(name string, manager topologymanager.Manager, devices *devicemanager.ManagerImpl, cpus *cpuProvider, memory *memoryProvider) Container {
	hint := manager.GetAffinity(podUID, name)
	held := Container{Name: name, Affinity: nodesOf(hint), Preferred: hint.Preferred, Devices: map[string][]string{}}
	for resource, instances := range devices.GetDevices(podUID, name) {
		for id := range instances {
			held.Devices[resource] = append(held.Devices[resource], id)
		}
		sort.Strings(held.Devices[resource])
	}
	if cpus != nil {
		if set, found := cpus.state.GetCPUSet(podUID, name); found {
			held.CPUs = set.String()
		}
	}
	if memory != nil {
		nodes := sets.New[int]()
		for _, block := range memory.state.GetMemoryBlocks(podUID, name) {
			nodes.Insert(block.NUMAAffinity...)
		}
		held.Memory = sets.List(nodes)
	}
	return held
}
