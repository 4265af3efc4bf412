package main

import (
	cadvisorapi "github.com/google/cadvisor/info/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

// combinations is how many hint combinations kubelet walks through.
func combinations(c *Case) float64 {
	product := 1.0
	for _, list := range c.Hints {
		if len(list) > 0 {
			product *= float64(len(list))
		}
	}
	return product
}

// merge lets kubelet's policy merge hints that are given as they are.
func merge(c *Case) Answer {
	logger := klog.TODO()
	options := must(topologymanager.NewPolicyOptions(logger, c.Options))
	var nodes []cadvisorapi.Node
	for i, id := range c.NUMANodes {
		node := cadvisorapi.Node{Id: id}
		if c.Distances != nil {
			node.Distances = c.Distances[i]
		}
		nodes = append(nodes, node)
	}
	info := must(topologymanager.NewNUMAInfo(nodes, options))
	var policy topologymanager.Policy
	switch c.Policy {
	case topologymanager.PolicyBestEffort:
		policy = topologymanager.NewBestEffortPolicy(info, options)
	case topologymanager.PolicyRestricted:
		policy = topologymanager.NewRestrictedPolicy(info, options)
	default:
		policy = topologymanager.NewSingleNumaNodePolicy(info, options)
	}
	hints := map[string][]topologymanager.TopologyHint{}
	for resource, list := range c.Hints {
		if list == nil {
			hints[resource] = nil
			continue
		}
		hints[resource] = []topologymanager.TopologyHint{}
		for _, hint := range list {
			var mask bitmask.BitMask
			if hint.Mask != nil {
				mask = must(bitmask.NewBitMask(hint.Mask...))
			}
			hints[resource] = append(hints[resource], topologymanager.TopologyHint{NUMANodeAffinity: mask, Preferred: hint.Preferred})
		}
	}
	best, admit := policy.Merge(logger, []map[string][]topologymanager.TopologyHint{hints})
	answer := Answer{ID: c.ID, Admit: admit, Affinity: nodesOf(best), Preferred: best.Preferred}
	if !admit {
		answer.Reason = topologymanager.ErrorTopologyAffinity
	}
	return answer
}
