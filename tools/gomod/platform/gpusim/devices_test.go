package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func TestIdsAreStableDistinctAndOfNvidiasForm(t *testing.T) {
	form := regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, seed := range []string{"node-a", "node-b"} {
		first, _ := newFleet(seed, 8, 1, 2).snapshot()
		again, _ := newFleet(seed, 8, 1, 2).snapshot()
		if !reflect.DeepEqual(first, again) {
			t.Fatalf("%s: ids differ after a restart", seed)
		}
		for _, each := range first {
			if !form.MatchString(each.ID) || seen[each.ID] {
				t.Fatalf("id %q is malformed or given twice", each.ID)
			}
			seen[each.ID] = true
		}
	}
}

func TestDevicesAreSpreadInBlocksOverNumaNodes(t *testing.T) {
	devices, _ := newFleet("n", 5, 1, 2).snapshot()
	var nodes []int
	for _, each := range devices {
		nodes = append(nodes, each.NumaNode)
	}
	if want := []int{0, 0, 0, 1, 1}; !reflect.DeepEqual(nodes, want) {
		t.Fatalf("NUMA nodes are %v, want %v", nodes, want)
	}
}

func TestPreferredAllocationKeepsNodesWhole(t *testing.T) {
	numa := map[string]int{"a0": 0, "a1": 0, "a2": 0, "b0": 1, "b1": 1}
	all := []string{"a0", "a1", "a2", "b0", "b1"}
	for _, each := range []struct {
		name string
		free []string
		must []string
		size int
		want []string
	}{
		{"the smallest node that fits", all, nil, 2, []string{"b0", "b1"}},
		{"the only node that fits", all, nil, 3, []string{"a0", "a1", "a2"}},
		{"the largest node first when none fits", all, nil, 4, []string{"a0", "a1", "a2", "b0"}},
		{"beside what must be in", all, []string{"a1"}, 2, []string{"a1", "a0"}},
		{"all there is when too few are free", []string{"b1"}, nil, 2, []string{"b1"}},
		{"nothing asked, nothing given", all, nil, 0, nil},
	} {
		if got := preferred(each.free, each.must, each.size, numa); !reflect.DeepEqual(got, each.want) {
			t.Errorf("%s: got %v, want %v", each.name, got, each.want)
		}
	}
}

func TestAllocateNamesTheDevicesAndRefusesStrangers(t *testing.T) {
	p := &plugin{resource: "nvidia.com/gpu", fleet: newFleet("n", 2, 1, 1)}
	devices, _ := p.fleet.snapshot()
	ask := func(ids ...string) (*api.AllocateResponse, error) {
		return p.Allocate(context.Background(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}})
	}
	answer, err := ask(devices[0].ID, devices[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := answer.ContainerResponses[0].Envs["NVIDIA_VISIBLE_DEVICES"], devices[0].ID+","+devices[1].ID; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if _, err := ask("GPU-stranger"); err == nil || !strings.Contains(err.Error(), "GPU-stranger") {
		t.Fatalf("a stranger was allocated: %v", err)
	}
}

func TestControlEndpointChangesHealthAndWakesTheKubelet(t *testing.T) {
	f := newFleet("n", 2, 1, 1)
	server := httptest.NewServer(control(f))
	defer server.Close()
	devices, changed := f.snapshot()
	for _, each := range []struct {
		device, body string
		want         int
	}{
		{devices[1].ID, "Unhealthy", http.StatusOK},
		{"0", "Unhealthy\n", http.StatusOK},
		{"0", "Healthy", http.StatusOK},
		{"7", "Healthy", http.StatusNotFound},
		{"0", "sick", http.StatusBadRequest},
	} {
		request, _ := http.NewRequest(http.MethodPut, server.URL+"/devices/"+each.device+"/health", strings.NewReader(each.body))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != each.want {
			t.Errorf("%s %q: status %d, want %d", each.device, each.body, response.StatusCode, each.want)
		}
	}
	select {
	case <-changed:
	default:
		t.Error("no change was announced")
	}
	after, _ := f.snapshot()
	if after[0].Health != api.Healthy || after[1].Health != api.Unhealthy {
		t.Errorf("health is %q, %q", after[0].Health, after[1].Health)
	}
}

func TestAReplacedKubeletSocketIsSeen(t *testing.T) {
	directory := t.TempDir()
	own, kubelet := filepath.Join(directory, "own.sock"), filepath.Join(directory, "kubelet.sock")
	for _, path := range []string{own, kubelet} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	if restarted(own, kubelet, before) {
		t.Fatal("nothing has changed")
	}
	later := before.ModTime().Add(time.Second)
	if err := os.Chtimes(kubelet, later, later); err != nil {
		t.Fatal(err)
	}
	if !restarted(own, kubelet, before) {
		t.Fatal("a new socket was not seen")
	}
	if err := os.Remove(own); err != nil || !restarted(own, kubelet, before) {
		t.Fatal("the removal of the own socket was not seen")
	}
}
