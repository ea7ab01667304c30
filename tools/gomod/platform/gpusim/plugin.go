package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// callTimeout bounds one call to the kubelet on this machine.
const callTimeout = 5 * time.Second

// plugin speaks the kubelet's device-plugin API for one resource.
type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	fleet    *fleet
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return options(), nil
}

func options() *api.DevicePluginOptions {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}
}

// ListAndWatch sends the devices now and after every change of health.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		devices, changed := p.fleet.snapshot()
		if err := stream.Send(&api.ListAndWatchResponse{Devices: report(devices)}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func report(devices []device) []*api.Device {
	reported := make([]*api.Device, 0, len(devices))
	for _, each := range devices {
		reported = append(reported, &api.Device{
			ID:       each.ID,
			Health:   each.Health,
			Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: int64(each.NumaNode)}}},
		})
	}
	return reported
}

func (p *plugin) GetPreferredAllocation(_ context.Context, request *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	response := &api.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		ids := preferred(container.AvailableDeviceIDs, container.MustIncludeDeviceIDs, int(container.AllocationSize), p.fleet.numaNodes())
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return response, nil
}

// Allocate tells a container its devices by the variable that NVIDIA's plugin sets.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		if id := p.fleet.unknown(container.DevicesIds); id != "" {
			return nil, status.Errorf(codes.InvalidArgument, "%s has no device %q", p.resource, id)
		}
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}

// socketName is the plugin's file in the kubelet's directory, one for each resource.
func socketName(resource string) string {
	return "simulator-" + strings.ReplaceAll(resource, "/", "_") + ".sock"
}

// serve answers the kubelet until it restarts (which removes or replaces the sockets) or ctx ends.
func (p *plugin) serve(ctx context.Context, directory string) error {
	own, kubelet := filepath.Join(directory, socketName(p.resource)), filepath.Join(directory, "kubelet.sock")
	if err := os.Remove(own); err != nil && !os.IsNotExist(err) {
		return err
	}
	before, err := os.Stat(kubelet)
	if err != nil {
		return fmt.Errorf("the kubelet is not there: %w", err)
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer server.Stop()
	if err := p.register(ctx, kubelet); err != nil {
		return fmt.Errorf("registering %s: %w", p.resource, err)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-ticker.C:
			if restarted(own, kubelet, before) {
				return nil
			}
		}
	}
}

func (p *plugin) register(ctx context.Context, kubelet string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: socketName(p.resource), ResourceName: p.resource, Options: options(),
	})
	return err
}

// restarted says whether the kubelet has come back since before: it clears the directory and makes its socket anew.
func restarted(own, kubelet string, before os.FileInfo) bool {
	if _, err := os.Stat(own); err != nil {
		return true
	}
	now, err := os.Stat(kubelet)
	return err == nil && !(os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()))
}
