package main

import v1 "k8s.io/api/core/v1"

// Case is one line of input, in the form that `mortise admit` reads (docs/topology-manager.md).
type Case struct {
	ID      int               `json:"id"`
	Kubelet string            `json:"kubelet"`
	Policy  string            `json:"policy"`
	Options map[string]string `json:"options,omitempty"`

	NUMANodes []int               `json:"numa_nodes,omitempty"`
	Distances [][]uint64          `json:"distances,omitempty"`
	Hints     map[string][]HintOf `json:"hints,omitempty"`

	Scope      string              `json:"scope,omitempty"`
	CPU        string              `json:"cpu,omitempty"`
	CPUOptions map[string]string   `json:"cpu_options,omitempty"`
	Memory     string              `json:"memory,omitempty"`
	Node       *Node               `json:"node,omitempty"`
	Pod        *v1.PodSpec         `json:"pod,omitempty"`
	Assigned   map[string]Assigned `json:"assigned,omitempty"`
}

// HintOf is one hint; a nil mask is "no opinion".
type HintOf struct {
	Mask      []int `json:"mask"`
	Preferred bool  `json:"preferred"`
}

type Node struct {
	NUMA          []NUMANode          `json:"numa"`
	Cores         []string            `json:"cores,omitempty"`
	Sockets       []string            `json:"sockets,omitempty"`
	Caches        []string            `json:"caches,omitempty"`
	ReservedCPUs  string              `json:"reserved_cpus,omitempty"`
	ExclusiveCPUs string              `json:"exclusive_cpus,omitempty"`
	MemoryBlocks  []Block             `json:"memory_blocks,omitempty"`
	Devices       map[string]Resource `json:"devices,omitempty"`
}

type NUMANode struct {
	ID        int               `json:"id"`
	CPUs      string            `json:"cpus"`
	Memory    map[string]uint64 `json:"memory,omitempty"`
	Distances []uint64          `json:"distances,omitempty"`
}

type Block struct {
	NUMA []int  `json:"numa"`
	Type string `json:"type"`
	Size uint64 `json:"size"`
}

type Resource struct {
	Devices []Device `json:"devices"`
	Prefer  []string `json:"prefer,omitempty"`
}

// Device has a nil NUMA list when its plugin sends no Topology.
type Device struct {
	ID        string `json:"id"`
	NUMA      []int  `json:"numa"`
	Healthy   bool   `json:"healthy"`
	Allocated bool   `json:"allocated"`
}

// Assigned is what a container holds from before a restart.
type Assigned struct {
	Devices map[string][]string `json:"devices,omitempty"`
	CPUs    string              `json:"cpus,omitempty"`
	Memory  []Block             `json:"memory,omitempty"`
}

// Answer is what kubelet's code decided.
type Answer struct {
	ID         int         `json:"id"`
	Admit      bool        `json:"admit"`
	Reason     string      `json:"reason"`
	Message    string      `json:"message,omitempty"`
	Affinity   []int       `json:"affinity"`
	Preferred  bool        `json:"preferred"`
	Containers []Container `json:"containers,omitempty"`
}

type Container struct {
	Name      string              `json:"name"`
	Affinity  []int               `json:"affinity"`
	Preferred bool                `json:"preferred"`
	Devices   map[string][]string `json:"devices,omitempty"`
	CPUs      string              `json:"cpus,omitempty"`
	Memory    []int               `json:"memory,omitempty"`
}
