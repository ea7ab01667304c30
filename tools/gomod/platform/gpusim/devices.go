package main

import (
	"crypto/sha1"
	"fmt"
	"sort"
	"strconv"
	"sync"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// device is one simulated GPU.
type device struct {
	Index     int    `json:"index"`
	ID        string `json:"id"`
	NumaNode  int    `json:"numaNode"`
	MemoryMiB int    `json:"memoryMib"`
	Health    string `json:"health"`
}

// fleet holds the devices of this node; changed wakes whoever reports them to the kubelet.
type fleet struct {
	mutex   sync.Mutex
	devices []device
	changed chan struct{}
}

// newFleet makes count devices whose ids depend on seed and index only, spread evenly and in blocks over numaNodes.
func newFleet(seed string, count, memoryMiB, numaNodes int) *fleet {
	made := &fleet{changed: make(chan struct{})}
	for index := range count {
		made.devices = append(made.devices, device{
			Index:     index,
			ID:        deviceID(seed, index),
			NumaNode:  index * numaNodes / count,
			MemoryMiB: memoryMiB,
			Health:    api.Healthy,
		})
	}
	return made
}

// deviceID has the form of NVIDIA's ids, "GPU-" and a UUID.
func deviceID(seed string, index int) string {
	sum := sha1.Sum([]byte(seed + "/" + strconv.Itoa(index)))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// snapshot returns a copy of the devices and a channel that is closed at the next change.
func (f *fleet) snapshot() ([]device, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]device(nil), f.devices...), f.changed
}

// setHealth changes the device with this id or index; false when there is none.
func (f *fleet) setHealth(name, health string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for position := range f.devices {
		candidate := &f.devices[position]
		if candidate.ID != name && strconv.Itoa(candidate.Index) != name {
			continue
		}
		if candidate.Health != health {
			candidate.Health = health
			close(f.changed)
			f.changed = make(chan struct{})
		}
		return true
	}
	return false
}

// unknown returns the first id that is none of ours, or "".
func (f *fleet) unknown(ids []string) string {
	nodes := f.numaNodes()
	for _, id := range ids {
		if _, ours := nodes[id]; !ours {
			return id
		}
	}
	return ""
}

func (f *fleet) numaNodes() map[string]int {
	devices, _ := f.snapshot()
	nodes := make(map[string]int, len(devices))
	for _, each := range devices {
		nodes[each.ID] = each.NumaNode
	}
	return nodes
}

// preferred picks size ids: those that must be in, then devices of the same NUMA node; with a free choice it takes the smallest node that
// holds all of them, so that large requests find whole nodes later.
func preferred(available, must []string, size int, numaNode map[string]int) []string {
	chosen := append([]string(nil), must...)
	taken := make(map[string]bool, size)
	used := make(map[int]bool)
	for _, id := range must {
		taken[id] = true
		used[numaNode[id]] = true
	}
	free := make(map[int][]string)
	for _, id := range available {
		if !taken[id] {
			free[numaNode[id]] = append(free[numaNode[id]], id)
		}
	}
	for _, node := range nodeOrder(free, used, size-len(chosen)) {
		sort.Strings(free[node])
		for _, id := range free[node] {
			if len(chosen) < size {
				chosen = append(chosen, id)
			}
		}
	}
	return chosen
}

// nodeOrder sorts NUMA nodes: used ones first, then the smallest that fits need, then the largest.
func nodeOrder(free map[int][]string, used map[int]bool, need int) []int {
	nodes := make([]int, 0, len(free))
	for node := range free {
		nodes = append(nodes, node)
	}
	sort.Slice(nodes, func(i, j int) bool {
		a, b := nodes[i], nodes[j]
		if used[a] != used[b] {
			return used[a]
		}
		fitsA, fitsB := len(free[a]) >= need, len(free[b]) >= need
		if fitsA != fitsB {
			return fitsA
		}
		if len(free[a]) != len(free[b]) {
			return (len(free[a]) < len(free[b])) == fitsA
		}
		return a < b
	})
	return nodes
}
