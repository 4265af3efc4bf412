package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
)

const gibibyte = 1 << 30

// dice draws the parts of random cases.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool   { return d.IntN(100) < percent }
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }
func pick[T any](d dice, items ...T) T   { return items[d.IntN(len(items))] }
func (d dice) some(ids []int, percent int) []int {
	var chosen []int
	for _, id := range ids {
		if d.chance(percent) {
			chosen = append(chosen, id)
		}
	}
	return chosen
}

// drawCase draws case `id` with `numas` NUMA nodes.
func drawCase(d dice, id, numas int) *Case {
	c := &Case{ID: id, Kubelet: "1.36"}
	c.Policy = pick(d, "best-effort", "best-effort", "restricted", "restricted", "single-numa-node", "single-numa-node")
	if d.chance(20) {
		c.Options = map[string]string{"prefer-closest-numa-nodes": "true"}
	}
	if d.chance(25) {
		drawHints(d, c, numas)
		return c
	}
	if d.chance(8) {
		c.Policy = "none"
	}
	drawMachine(d, c, numas)
	return c
}

func drawDistances(d dice, ids []int) [][]uint64 {
	// Kubelet looks a distance up by NUMA id, so a row reaches to the highest one.
	highest := slices.Max(ids)
	table := make([][]uint64, highest+1)
	for i := range table {
		table[i] = make([]uint64, highest+1)
	}
	values := []uint64{11, 12, 16, 20, 21, 32}
	for i := range table {
		table[i][i] = 10
		for j := range i {
			table[i][j] = pick(d, values...)
			table[j][i] = table[i][j]
			if d.chance(5) {
				table[j][i] = pick(d, values...)
			}
		}
	}
	var rows [][]uint64
	for _, id := range ids {
		rows = append(rows, table[id])
	}
	return rows
}

func nodeIDs(d dice, numas int) []int {
	ids := make([]int, numas)
	next := 0
	sparse := d.chance(10)
	for i := range ids {
		if sparse {
			next += d.IntN(3)
		}
		ids[i] = next
		next++
	}
	return ids
}

func subset(ids []int, mask uint) []int {
	chosen := []int{}
	for i, id := range ids {
		if mask&(1<<i) != 0 {
			chosen = append(chosen, id)
		}
	}
	return chosen
}

func drawHints(d dice, c *Case, numas int) {
	c.NUMANodes = nodeIDs(d, numas)
	if c.Options != nil {
		c.Distances = drawDistances(d, c.NUMANodes)
	}
	c.Hints = map[string][]HintOf{}
	for i := range d.between(1, 5) {
		c.Hints[fmt.Sprintf("r%d", i)] = drawHintList(d, c.NUMANodes)
	}
}

func drawHintList(d dice, ids []int) []HintOf {
	if d.chance(10) {
		return nil
	}
	list := []HintOf{}
	if d.chance(6) {
		return list
	}
	preferredWidth := d.between(1, len(ids))
	keep := pick(d, 5, 20, 60, 100)
	seed := uint(0) // lists of managers are mostly the supersets of something
	if d.chance(50) {
		seed = uint(d.IntN(1 << len(ids)))
	}
	byWidth := d.chance(80)
	for mask := uint(1); mask < 1<<len(ids); mask++ {
		if mask&seed != seed || !d.chance(keep) {
			continue
		}
		preferred := bits.OnesCount(mask) == preferredWidth
		if !byWidth {
			preferred = d.chance(40)
		}
		list = append(list, HintOf{subset(ids, mask), preferred})
	}
	if d.chance(4) {
		list = append(list, HintOf{nil, d.chance(50)})
	}
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func drawMachine(d dice, c *Case, numas int) {
	c.Scope = pick(d, "container", "container", "pod")
	c.Node = &Node{}
	ids := nodeIDs(d, numas)
	for _, id := range ids {
		c.Node.NUMA = append(c.Node.NUMA, NUMANode{ID: id})
	}
	if c.Options != nil {
		for i, row := range drawDistances(d, ids) {
			c.Node.NUMA[i].Distances = row
		}
	}
	if d.chance(75) {
		c.CPU = "static"
		drawCPUOptions(d, c)
	}
	cpus := drawCPUs(d, c)
	if d.chance(45) {
		c.Memory = "Static"
	}
	drawMemory(d, c, ids)
	c.Node.Devices = map[string]Resource{}
	for _, name := range []string{"nvidia.com/gpu", "example.com/nic", "nvidia.com/mig-1g.5gb"}[:d.between(0, 3)] {
		c.Node.Devices[name] = drawDevices(d, name, ids)
	}
	drawPod(d, c, cpus)
	if d.chance(14) {
		drawAssigned(d, c)
	}
}

func drawCPUOptions(d dice, c *Case) {
	options := map[string]string{}
	c.CPUOptions = options
	if d.chance(50) {
		return
	}
	switch d.IntN(4) {
	case 0:
		options["full-pcpus-only"] = "true"
		if d.chance(40) {
			options["distribute-cpus-across-numa"] = "true"
		}
	case 1:
		options["distribute-cpus-across-numa"] = "true"
	case 2:
		options["distribute-cpus-across-cores"] = "true"
	case 3:
		options["prefer-align-cpus-by-uncorecache"] = "true"
	}
	if c.Policy != "single-numa-node" && d.chance(25) {
		options["align-by-socket"] = "true"
	}
	if d.chance(10) {
		options["strict-cpu-reservation"] = "true"
	}
}

// drawCPUs lays out cores, sockets and caches and tells how many CPUs the biggest NUMA node has.
func drawCPUs(d dice, c *Case) int {
	node := c.Node
	threads := pick(d, 1, 2, 2)
	usual := d.between(1, 8)
	cores := make([]int, len(node.NUMA))
	total := 0
	for i := range cores {
		cores[i] = usual
		if d.chance(8) {
			cores[i] = d.between(1, 8)
		}
		if i > 0 && d.chance(3) {
			cores[i] = 0 // a node with memory only
		}
		total += cores[i]
	}
	interleaved := d.chance(50) // Linux numbers the second threads after all first ones
	next := 0
	var byCore [][]int
	var cpusOf [][]int
	for _, count := range cores {
		cpusOf = append(cpusOf, nil)
		for range count {
			var core []int
			for t := range threads {
				cpu := next*threads + t
				if interleaved {
					cpu = next + t*total
				}
				core = append(core, cpu)
			}
			next++
			byCore = append(byCore, core)
			cpusOf[len(cpusOf)-1] = append(cpusOf[len(cpusOf)-1], core...)
		}
	}
	for _, core := range byCore {
		node.Cores = append(node.Cores, cpuset.New(core...).String())
	}
	biggest := 0
	for i := range node.NUMA {
		node.NUMA[i].CPUs = cpuset.New(cpusOf[i]...).String()
		biggest = max(biggest, len(cpusOf[i]))
	}
	drawSockets(d, c, cpusOf, byCore)
	drawTaken(d, c, byCore)
	return biggest
}

func drawSockets(d dice, c *Case, cpusOf, byCore [][]int) {
	node := c.Node
	split := func(cpus []int, parts int) {
		for part := range parts {
			if chunk := cpus[part*len(cpus)/parts : (part+1)*len(cpus)/parts]; len(chunk) > 0 {
				node.Sockets = append(node.Sockets, cpuset.New(chunk...).String())
			}
		}
	}
	perSocket := pick(d, 1, 1, 2, 4)
	severalSockets := d.chance(6) && c.CPUOptions["align-by-socket"] == ""
	var socket []int
	for i, cpus := range cpusOf {
		socket = append(socket, cpus...)
		if (i+1)%perSocket == 0 || i == len(cpusOf)-1 {
			// Threads of a core follow each other here, so an even split keeps cores whole.
			if severalSockets && len(socket)%4 == 0 {
				split(socket, 2)
			} else {
				split(socket, 1)
			}
			socket = nil
		}
	}
	if !d.chance(40) {
		return
	}
	size := d.between(1, 4)
	var cache []int
	position := 0
	for _, cpus := range cpusOf {
		for i := 0; i < len(cpus); position++ {
			cache = append(cache, byCore[position]...)
			i += len(byCore[position])
			if len(cache) >= size*len(byCore[position]) || i >= len(cpus) {
				node.Caches = append(node.Caches, cpuset.New(cache...).String())
				cache = nil
			}
		}
	}
}

func drawTaken(d dice, c *Case, byCore [][]int) {
	var all []int
	for _, core := range byCore {
		all = append(all, core...)
	}
	reserved := append([]int{}, byCore[0]...)
	if d.chance(30) {
		reserved = []int{pick(d, all...)}
	} else if d.chance(20) {
		reserved = append(reserved, pick(d, byCore...)...)
	}
	c.Node.ReservedCPUs = cpuset.New(reserved...).String()
	percent := pick(d, 0, 0, 10, 30, 60)
	wholeCores := d.chance(60)
	var taken []int
	for _, core := range byCore {
		if wholeCores {
			if d.chance(percent) {
				taken = append(taken, core...)
			}
			continue
		}
		taken = append(taken, d.some(core, percent)...)
	}
	c.Node.ExclusiveCPUs = cpuset.New(taken...).Difference(cpuset.New(reserved...)).String()
}

func drawMemory(d dice, c *Case, ids []int) {
	pages := d.chance(30)
	usual := uint64(d.between(4, 64)) * gibibyte
	for i := range c.Node.NUMA {
		amount := usual
		if d.chance(15) {
			amount = uint64(d.between(0, 64)) * gibibyte
		}
		c.Node.NUMA[i].Memory = map[string]uint64{"memory": amount}
		if pages {
			c.Node.NUMA[i].Memory[hugePage] = uint64(d.between(0, 8)) * gibibyte
		}
	}
	if c.Memory == "" || d.chance(40) {
		return
	}
	// Groups of nodes that share memory do not overlap.
	shuffled := slices.Clone(ids)
	d.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for len(shuffled) > 0 {
		size := min(len(shuffled), pick(d, 1, 1, 1, 2, 3))
		group := slices.Clone(shuffled[:size])
		slices.Sort(group)
		shuffled = shuffled[size:]
		if d.chance(55) {
			continue
		}
		for range d.between(1, 2) {
			block := Block{NUMA: group, Type: "memory", Size: uint64(d.between(1, 24)) * gibibyte}
			if pages && d.chance(30) {
				block.Type = hugePage
			}
			if fitsBlock(c.Node, block) {
				c.Node.MemoryBlocks = append(c.Node.MemoryBlocks, block)
			}
		}
	}
}

// fitsBlock says whether a group has room for one more block.
func fitsBlock(node *Node, block Block) bool {
	room := uint64(0)
	for _, numa := range node.NUMA {
		if slices.Contains(block.NUMA, numa.ID) {
			room += numa.Memory[block.Type]
		}
	}
	used := block.Size
	for _, other := range node.MemoryBlocks {
		if other.Type == block.Type && slices.Equal(other.NUMA, block.NUMA) {
			used += other.Size
		}
	}
	return used <= room
}

func drawDevices(d dice, name string, ids []int) Resource {
	var list Resource
	style := d.IntN(10)
	busy := pick(d, 0, 0, 20, 50)
	home := d.some(ids, 60)
	if len(home) == 0 {
		home = ids[:1]
	}
	for i := range d.between(1, 10) {
		device := Device{ID: name[len(name)-3:] + strconv.Itoa(i), Healthy: !d.chance(7), Allocated: d.chance(busy)}
		switch {
		case style < 6:
			device.NUMA = []int{pick(d, home...)}
		case style == 6: // no topology
		case style == 7: // several nodes
			device.NUMA = d.some(ids, 50)
		default: // a mixture
			switch d.IntN(5) {
			case 0:
			case 1:
				device.NUMA = []int{}
			case 2:
				device.NUMA = d.some(ids, 40)
			default:
				device.NUMA = []int{pick(d, ids...)}
			}
			if d.chance(2) {
				device.NUMA = append(device.NUMA, 40) // a node that the machine does not have
			}
		}
		list.Devices = append(list.Devices, device)
	}
	if d.chance(40) {
		for _, i := range d.Perm(len(list.Devices)) {
			list.Prefer = append(list.Prefer, list.Devices[i].ID)
		}
		if d.chance(40) {
			list.Prefer = list.Prefer[:d.IntN(len(list.Prefer)+1)]
		}
	}
	return list
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func drawPod(d dice, c *Case, cpus int) {
	c.Pod = &v1.PodSpec{}
	class := pick(d, v1.PodQOSGuaranteed, v1.PodQOSGuaranteed, v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort)
	add := func(list *[]v1.Container, name string, sidecar bool) {
		container := v1.Container{Name: name, Resources: drawResources(d, c, class, cpus)}
		if sidecar {
			always := v1.ContainerRestartPolicyAlways
			container.RestartPolicy = &always
		}
		*list = append(*list, container)
	}
	if d.chance(45) {
		for i := range d.between(1, 3) {
			add(&c.Pod.InitContainers, fmt.Sprintf("init%d", i), d.chance(35))
		}
	}
	for i := range pick(d, 1, 1, 1, 2, 3) {
		add(&c.Pod.Containers, fmt.Sprintf("app%d", i), false)
	}
	if d.chance(3) {
		amounts := v1.ResourceList{v1.ResourceCPU: quantity("4"), v1.ResourceMemory: quantity("8Gi")}
		c.Pod.Resources = &v1.ResourceRequirements{Requests: amounts, Limits: amounts}
	}
}

func drawResources(d dice, c *Case, class v1.PodQOSClass, cpus int) v1.ResourceRequirements {
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	if class != v1.PodQOSBestEffort {
		cpu := strconv.Itoa(d.between(1, max(1, cpus+cpus/2)))
		if d.chance(50) {
			cpu = strconv.Itoa(d.between(1, max(1, cpus/2)))
		}
		if d.chance(12) {
			cpu = "1500m"
		}
		memory := fmt.Sprintf("%dGi", pick(d, d.between(1, 8), d.between(1, 80)))
		requests[v1.ResourceCPU], requests[v1.ResourceMemory] = quantity(cpu), quantity(memory)
		if class == v1.PodQOSGuaranteed {
			limits[v1.ResourceCPU], limits[v1.ResourceMemory] = quantity(cpu), quantity(memory)
		} else if d.chance(50) {
			limits[v1.ResourceMemory] = quantity("100Gi")
		}
		if _, pages := c.Node.NUMA[0].Memory[hugePage]; pages && d.chance(40) {
			amount := quantity(fmt.Sprintf("%dMi", 2*d.between(0, 2048)))
			requests[hugePage], limits[hugePage] = amount, amount
		}
	}
	for _, name := range []string{"nvidia.com/gpu", "example.com/nic", "nvidia.com/mig-1g.5gb"} {
		list, known := c.Node.Devices[name]
		if !known || !d.chance(60) {
			continue
		}
		count := d.between(1, min(4, len(list.Devices)+1))
		if d.chance(4) {
			count = 0
		}
		limits[v1.ResourceName(name)] = quantity(strconv.Itoa(count))
	}
	if d.chance(3) {
		limits["example.com/unknown"] = quantity("1")
	}
	return v1.ResourceRequirements{Requests: requests, Limits: limits}
}

// drawAssigned makes some containers hold what a kubelet before a restart gave them, mostly as much as they ask.
func drawAssigned(d dice, c *Case) {
	c.Assigned = map[string]Assigned{}
	shared := must(cpuset.Parse(allCPUs(c.Node))).
		Difference(must(cpuset.Parse(c.Node.ReservedCPUs))).
		Difference(must(cpuset.Parse(c.Node.ExclusiveCPUs)))
	for _, container := range append(slices.Clone(c.Pod.InitContainers), c.Pod.Containers...) {
		if !d.chance(60) {
			continue
		}
		held := Assigned{Devices: map[string][]string{}}
		for _, name := range []string{"nvidia.com/gpu", "example.com/nic", "nvidia.com/mig-1g.5gb"} {
			amount, asked := container.Resources.Limits[v1.ResourceName(name)]
			if !asked || !d.chance(80) {
				continue
			}
			count := int(amount.Value())
			if d.chance(10) {
				count++
			}
			list := c.Node.Devices[name]
			for i := range list.Devices {
				if count > 0 && !list.Devices[i].Allocated && d.chance(70) {
					list.Devices[i].Allocated = true
					held.Devices[name] = append(held.Devices[name], list.Devices[i].ID)
					count--
				}
			}
		}
		if amount := container.Resources.Requests.Cpu().Value(); c.CPU == "static" && amount > 0 && d.chance(70) {
			free := shared.List()
			d.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
			mine := cpuset.New(free[:min(len(free), int(amount))]...)
			if mine.Size() > 0 {
				held.CPUs = mine.String()
				shared = shared.Difference(mine)
			}
		}
		if c.Memory == "Static" && d.chance(70) {
			drawAssignedMemory(d, c, &container, &held)
		}
		c.Assigned[container.Name] = held
	}
}

func drawAssignedMemory(d dice, c *Case, container *v1.Container, held *Assigned) {
	group := []int{pick(d, c.Node.NUMA...).ID}
	if len(c.Node.MemoryBlocks) > 0 && d.chance(50) {
		group = pick(d, c.Node.MemoryBlocks...).NUMA
	}
	for _, block := range c.Node.MemoryBlocks {
		// A node may be in one group only.
		overlaps := slices.ContainsFunc(group, func(id int) bool { return slices.Contains(block.NUMA, id) })
		if overlaps && !slices.Equal(block.NUMA, group) {
			return
		}
	}
	for _, other := range c.Assigned {
		for _, block := range other.Memory {
			if !slices.Equal(block.NUMA, group) {
				return
			}
		}
	}
	for _, kind := range []string{"memory", hugePage} {
		amount, asked := container.Resources.Requests[v1.ResourceName(kind)]
		if !asked {
			continue
		}
		block := Block{NUMA: group, Type: kind, Size: uint64(amount.Value())}
		if d.chance(10) {
			block.Size += gibibyte
		}
		held.Memory = append(held.Memory, block)
	}
}

func allCPUs(node *Node) string {
	all := cpuset.New()
	for _, numa := range node.NUMA {
		all = all.Union(must(cpuset.Parse(numa.CPUs)))
	}
	return all.String()
}
